"""Running the rules over datasets, and what comes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from evals.authoring.catalog import Catalog
from evals.authoring.checking import Checked
from evals.authoring.lint.registry import CODES, INVALID, INVALID_WHY, RULES
from evals.authoring.lint.rules import Context, Severity
from evals.shipped import guide

GUIDE = "authoring.md"


class Finding(BaseModel):
    """One finding, with all a reader needs to mend it."""

    model_config = ConfigDict(frozen=True)

    code: str
    severity: Severity
    source: str
    """The file or dataset."""
    item: str
    field: str
    message: str
    why: str
    fix: str

    @property
    def link(self) -> str:
        return f"{guide(GUIDE)}#{self.code.lower()}"


@dataclass(frozen=True)
class Selection:
    """Which findings are wanted: codes or their beginnings, `ignore` also for single items."""

    select: tuple[str, ...] = ()
    ignore: tuple[tuple[str, str | None], ...] = ()
    """Code and the item id it is ignored for (None: all)."""

    @classmethod
    def parse(cls, select: Iterable[str], ignore: Iterable[str]) -> Selection:
        """From the command line: codes separated by commas, `CODE:ITEM` to ignore it for one item.

        Raises ValueError that names the codes that do not exist.
        """
        wanted = tuple(_split(select))
        unwanted = tuple((code, item or None) for code, _, item in (one.partition(":") for one in _split(ignore)))
        asked = [*wanted, *(code for code, _ in unwanted)]
        unknown = [code for code in asked if not any(known.startswith(code.upper()) for known in CODES)]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no such code; there are {', '.join(CODES)}")
        return cls(tuple(code.upper() for code in wanted), tuple((code.upper(), item) for code, item in unwanted))

    def wants(self, code: str, item: str | None = None) -> bool:
        """Whether a finding of this code (of this item) is shown."""
        if self.select and not code.startswith(self.select):
            return False
        return not any(code.startswith(each) and one in (None, item) for each, one in self.ignore)


@dataclass(frozen=True)
class LintReport:
    """The findings over all sources, and the codes that were not looked at for want of a target."""

    findings: tuple[Finding, ...]
    items: int
    skipped: tuple[str, ...]

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors


def lint(
    checked: Sequence[tuple[str, Checked]], catalog: Catalog | None, selection: Selection | None = None
) -> LintReport:
    """Lint datasets, given by label with their validated items. catalog: None skips the rules that need a target."""
    selection = selection or Selection()
    findings: list[Finding] = []
    wanted = [rule for rule in RULES if selection.wants(rule.code)]
    for label, one in checked:
        found = [
            Finding(
                code=INVALID,
                severity="error",
                source=label,
                item=problem.item,
                field=problem.field,
                message=problem.message,
                why=INVALID_WHY,
                fix="see the message",
            )
            for problem in one.problems
        ]
        context = Context(one.items, catalog)
        for rule in wanted:
            if rule.needs_target and catalog is None:
                continue
            found += [
                Finding(
                    code=rule.code,
                    severity=hit.severity or rule.severity,
                    source=label,
                    item=hit.item,
                    field=hit.field,
                    message=hit.message,
                    why=rule.why,
                    fix=hit.fix,
                )
                for hit in rule.check(context)
            ]
        findings += sorted(
            (finding for finding in found if selection.wants(finding.code, finding.item)),
            key=lambda finding: (finding.item, finding.code, finding.field),
        )
    skipped = tuple(rule.code for rule in wanted if rule.needs_target) if catalog is None else ()
    return LintReport(tuple(findings), sum(len(one.items) for _, one in checked), skipped)


def _split(texts: Iterable[str]) -> list[str]:
    return [one for text in texts for one in re.split(r"[,\s]+", text) if one]
