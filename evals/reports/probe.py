"""A probe's report in plain lines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from evals.probe import CHARACTERS_PER_TOKEN, ProbeCall, ProbeReport
from evals.scoring.json_equality import json_equal

_OUTCOMES = {
    "result": "a result",
    "error": "a result marked as an error",
    "refused": "an error of the protocol",
    "no-answer": "no answer",
}


def probe_lines(report: ProbeReport) -> Iterator[str]:
    """What was called, each distinct answer in full, timing and whether repeats agreed."""
    yield f"{report.tool} {json.dumps(report.arguments, ensure_ascii=False)}"
    yield f"on {report.server} ({report.target}), which calls itself {report.server_version}"
    first = {number: group[0] for group in report.distinct for number in group}
    for number, call in enumerate(report.calls, start=1):
        if first[number] != number:
            yield f"call {number}: the same as call {first[number]}, {call.seconds:.3f} s"
            continue
        yield f"call {number}: {_OUTCOMES[call.outcome]}, {call.seconds:.3f} s"
        yield from _answer(call)
    if len(report.calls) > 1:
        yield f"timing: {report.timing()}"
        groups = report.distinct
        if len(groups) == 1:
            yield f"repeats: all {len(report.calls)} calls came back identical"
        else:
            named = "; ".join(", ".join(map(str, group)) for group in groups)
            yield f"repeats: {len(groups)} different answers in {len(report.calls)} calls ({named})"


def _answer(call: ProbeCall) -> Iterator[str]:
    if call.outcome in ("error", "refused"):
        yield f"  type: {call.error_type or 'none (no [slug] at the start, no type or code in JSON)'}"
    size = f"  size: {call.characters:,} characters, {call.text_bytes:,} bytes of text"
    size += f", approximately {call.approximate_tokens:,} tokens (at {CHARACTERS_PER_TOKEN} characters each)"
    if call.result is not None:
        size += f"; {call.json_bytes:,} bytes as JSON"
    yield size
    for line in call.text.splitlines():
        yield f"  | {line}"
    blocks = call.result.get("content", []) if isinstance(call.result, dict) else []
    for block in blocks:
        if block.get("type") != "text":
            shown = block.get("mimeType") or block.get("uri") or ""
            yield f"  + a block of type {block.get('type')} {shown}".rstrip()
    structured = call.result.get("structuredContent") if isinstance(call.result, dict) else None
    if structured is not None:
        yield f"  structured content: {_structured(structured, call.text)}"


def _structured(value: object, text: str) -> str:
    try:
        same = json_equal(json.loads(text), value)
    except ValueError:
        same = False
    return "the same as the text" if same else json.dumps(value, ensure_ascii=False)
