"""Token counts and costs of an observation, under the names that Langfuse gives them.

Source: the union ``UsageDetails`` in Langfuse's ``packages/shared/src/server/ingestion/types.ts``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evals.embedded.langfuse import jsonvalues


@dataclass(frozen=True)
class _Form:
    """The names of one of OpenAI's APIs for its counts."""

    input: str
    output: str
    total: str = "total_tokens"

    @property
    def counts(self) -> dict[str, str]:
        return {"input": self.input, "output": self.output, "total": self.total}

    @property
    def details(self) -> dict[str, str]:
        return {"input": f"{self.input}_details", "output": f"{self.output}_details"}


_OPENAI_FORMS = (
    _Form("prompt_tokens", "completion_tokens"),  # chat completions
    _Form("input_tokens", "output_tokens"),  # responses
)


def usage_details(sent: Any) -> dict[str, float]:
    """Token counts by kind, with their total, of what an SDK sent; empty when it sent none.

    OpenAI's forms become ``input``, ``output`` and ``total``. Their counts hold their details (what came from a
    cache, what was reasoning), so a detail becomes a kind of its own (``input_cached_tokens``) and is taken off
    its count. Every other mapping is kept, and added up when it has no ``total``.

    One difference to Langfuse: it knows OpenAI's forms only without any further key, and with one keeps OpenAI's
    names and adds all three up, twice the truth. Here further counts are kept beside, and the total is as sent.
    """
    details = sent if isinstance(sent, Mapping) else {}
    for form in _OPENAI_FORMS:
        found = _openai(details, form)
        if found is not None:
            return found
    return amounts(details)


def amounts(sent: Any) -> dict[str, float]:
    """The numbers of a mapping by kind, with their total."""
    found: dict[str, float] = {}
    for key, each in sent.items() if isinstance(sent, Mapping) else ():
        if isinstance(each, int | float) and not isinstance(each, bool):
            amount = jsonvalues.number(each)
            if amount is not None:
                found[key] = amount
    if found and "total" not in found:
        found["total"] = sum(found.values())
    return found


def total_of(found: Mapping[str, float], kind: str) -> float | None:
    """Everything whose name contains the kind: cached input tokens are input tokens."""
    parts = [amount for name, amount in found.items() if kind in name]
    return float(sum(parts)) if parts else None


def _openai(sent: Mapping[str, Any], form: _Form) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for kind, name in form.counts.items():
        count = _count(sent.get(name))
        if count is None:
            return None
        found[kind] = count
    for kind, name in form.details.items():
        parts = sent.get(name)
        for part, value in parts.items() if isinstance(parts, Mapping) else ():
            count = _count(value)
            if count is not None:
                found[f"{kind}_{part}"] = count
                found[kind] = max(found[kind] - count, 0)
    known = {*form.counts.values(), *form.details.values()}
    for name, value in sent.items():
        count = None if name in known else _count(value)
        if count is not None:
            found.setdefault(name, count)
    return found


def _count(value: Any) -> int | None:
    """A whole number of tokens; None for everything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    count = jsonvalues.number(value)
    return count if isinstance(count, int) and count >= 0 else None
