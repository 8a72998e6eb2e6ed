"""A probe: find out what the platform really does, before a case relies on it.

Copy this file to ``scripts/probe_<what>_tmp.py`` (git ignores that name), change it, and run it::

    python scripts/probe_names_tmp.py

For a single call `twogate probe TOOL --args JSON` is quicker. A probe like this one is for questions of several steps:
is a name free again after a deletion, does a list show at once what was created, is the same call answered twice in
the same way? The tools really run: use names with the prefix ``eval-``, and clean up (`twogate fixtures`).

What is worth asking before a case is written:

* What exactly does the error say, and what is its type? A case about an error needs the text an agent reads.
* Is the answer the same each time? A reference can't hold what changes from call to call.
* How large is the answer? Thousands of tokens in one result change what a model does next.
* What does the platform do that the description does not say? Defaults, limits, rounding, order.
"""

from __future__ import annotations

import asyncio
import sys

import click

from evals.errors import TwogateError
from evals.probe import open_prober
from evals.settings import Settings, withhold_secrets

# The question, in one sentence. Write the answer below it when the probe has given it.
QUESTION = "Is a task's name free again once the task is deleted?"


async def probe() -> None:
    settings = Settings.load()
    withhold_secrets()  # the server under test must not inherit the keys of models and of Langfuse
    # The target of twogate.toml; server="tasks" leaves the others out, tools=["tasks"] launches with these families.
    async with open_prober(settings, server="tasks") as prober:
        task = {"name": "eval-probe", "action": "count-words", "input": {"text": "one two"}}

        created = await prober.call("create_task", task)
        click.echo(f"created:       {created.outcome} {created.error_type or ''} in {created.seconds:.3f} s")

        again = await prober.call("create_task", task)
        click.echo(f"created again: {again.outcome} {again.error_type or ''}")
        click.echo(f"               {again.text}")  # the exact text an agent would read

        deleted = await prober.call("delete_task", {"task": "eval-probe"})
        click.echo(f"deleted:       {deleted.outcome} {deleted.error_type or ''}")

        anew = await prober.call("create_task", task)
        click.echo(f"created anew:  {anew.outcome}, about {anew.approximate_tokens} tokens in the answer")

        await prober.call("delete_task", {"task": "eval-probe"})
        click.echo(f"{QUESTION} {'Yes.' if anew.outcome == 'result' else 'No.'}")


if __name__ == "__main__":
    try:
        asyncio.run(probe())
    except TwogateError as error:
        sys.exit("\n".join(f"error: {line}" for line in error.lines))
