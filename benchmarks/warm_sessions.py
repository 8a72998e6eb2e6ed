"""Rewound sessions against fresh ones: wall time and processor time of a tool-call trial.

    python benchmarks/warm_sessions.py --trials 20

Both run in this process, one after the other, with the same target (the repository server) and a scripted model that
answers at once, so that what is left is the harness. The result is the ratio of the two in the same run.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import click

from evals.agents.claude_code import ClaudeCode
from evals.agents.first_call import first_call
from evals.agents.warm import WarmSessions
from evals.conversation import Conversation
from evals.embedded.model import ScriptedModel, parse_script
from evals.items import Item
from evals.shipped import shipped
from evals.target import load_target
from evals.tool_listing import list_all

_SCRIPT = {
    "version": 1,
    "agent": [{"query": "q", "turns": [{"calls": [{"name": "search_text", "input": {"query": "x"}}]}]}],
}
_TARGET = """
[servers.repository]
command = "${{TWOGATE_PYTHON}}"
args = ["-m", "evals", "serve", "fixtures/repository"]
cwd = "{root}"
"""


@dataclass(frozen=True)
class Cost:
    """Of one trial, on average."""

    wall: float
    """Seconds, at the concurrency measured."""
    cpu: float
    """Processor seconds of Claude Code and the server."""


async def measure(trial: Callable[[Item], Awaitable[Conversation]], trials: int, concurrency: int) -> Cost:
    """Run the trials and average them. Children must have ended for their processor time to be counted."""
    knobs = {"category": "search_text", "kind": "tool-call", "expectedTools": ["search_text"]}
    item = Item.model_validate({"id": "pr/search_text/x", "input": {"query": "q"}, "metadata": knobs})
    limit = asyncio.Semaphore(concurrency)

    async def one() -> None:
        async with limit:
            conversation = await trial(item)
        if [call.tool for call in conversation.calls] != ["search_text"]:
            raise SystemExit("a trial went wrong, so the times mean nothing")

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(trials)))
    return Cost(wall=(time.perf_counter() - started) / trials, cpu=0.0)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def compare(trials: int, concurrency: int) -> tuple[Cost, Cost]:
    """(fresh, warm)."""
    with tempfile.TemporaryDirectory() as folder, ScriptedModel(parse_script(_SCRIPT)) as model:
        (Path(folder) / "twogate.toml").write_text(_TARGET.format(root=shipped()))
        target = load_target(Path(folder), {})
        credentials = {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": model.base_url}
        agent = ClaudeCode(target, await list_all(target, [None]), credentials=credentials)

        before = _children_cpu()
        fresh = await measure(lambda item: first_call(agent, item), trials, concurrency)
        fresh = Cost(fresh.wall, (_children_cpu() - before) / trials)

        before = _children_cpu()
        pool = WarmSessions(agent)
        warm = await measure(pool.first_call, trials, concurrency)
        await pool.close()
        warm = Cost(warm.wall, (_children_cpu() - before) / trials)
        return fresh, warm


@click.command()
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1))
@click.option("--concurrency", default=4, show_default=True, type=click.IntRange(1))
def main(trials: int, concurrency: int) -> None:
    """Print both costs and their ratio."""
    fresh, warm = asyncio.run(compare(trials, concurrency))
    click.echo(f"{trials} tool-call trials, {concurrency} at once, start-up included")
    click.echo(f"fresh sessions: {fresh.wall:.3f} s wall, {fresh.cpu:.2f} CPU-s a trial")
    click.echo(f"warm sessions:  {warm.wall:.3f} s wall, {warm.cpu:.2f} CPU-s a trial")
    click.echo(f"ratio fresh/warm: {fresh.wall / warm.wall:.1f} wall, {fresh.cpu / warm.cpu:.1f} CPU")


if __name__ == "__main__":
    main()
