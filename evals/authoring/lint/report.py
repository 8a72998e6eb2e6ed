"""Findings for people and machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evals.authoring.lint.engine import LintReport


@dataclass(frozen=True)
class Line:
    """A line of the report and what it is, for those who show it in colour."""

    text: str
    kind: Literal["error", "warning", "detail", "summary"]


def lint_lines(report: LintReport) -> Iterator[Line]:
    """Each finding with its reason, its fix and where the guide says more; then the count."""
    for finding in report.findings:
        head = (
            f"{finding.source}: {finding.item}: {finding.code} {finding.severity}: {finding.field}: {finding.message}"
        )
        yield Line(head, finding.severity)
        yield Line(f"    why: {finding.why}", "detail")
        yield Line(f"    fix: {finding.fix} ({finding.link})", "detail")
    if report.skipped:
        yield Line(f"without a target, not looked at: {', '.join(report.skipped)}", "summary")
    yield Line(
        f"{_count(report.errors, 'error')}, {_count(report.warnings, 'warning')} in {report.items} items", "summary"
    )


def lint_json(report: LintReport) -> str:
    """For machines: every finding, the counts, and the codes that were skipped."""
    whole = {
        "version": 1,
        "errors": report.errors,
        "warnings": report.warnings,
        "items": report.items,
        "skipped": report.skipped,
        "findings": [{**finding.model_dump(), "link": finding.link} for finding in report.findings],
    }
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
