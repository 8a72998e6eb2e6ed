"""``twogate judge check`` on the console, as lines; the verdict is the last."""

from __future__ import annotations

from fractions import Fraction

from evals.gate import percent
from evals.judges.check import Checked, CheckReport

_MARKS = {True: "✅", False: "❌"}


def judge_line(models: tuple[str, ...], scripted: str | None) -> str:
    """Which judge it is, said before anything is spent."""
    who = models[0] if len(models) == 1 else f"panel of {', '.join(models)}"
    return f"judge: {who}{f' (scripted by {scripted})' if scripted else ''}"


def progress_line(one: Checked, done: int, total: int) -> str:
    count = f"[{done:>{len(str(total))}}/{total}]"
    if one.verdict is None:
        return f"{count} 🔥 {one.id}: no verdict"
    return f"{count} {_MARKS[one.agrees]} {one.id}: labelled {one.label}, judged {one.verdict}"


def closing_lines(report: CheckReport, minimum: Fraction | None) -> list[str]:
    """What is said of a finished check."""
    lines = []
    for one in report.disagreements:
        lines.append(f"❌ {one.id}: labelled {one.label}, judged {one.verdict}")
        lines.append(f"   judge: {_one_line(one.reason)}")
        lines.append(f"   label: {_one_line(one.note)}")
    for one in report.without_verdict:
        lines.append(f"🔥 {one.id}: no verdict: {_one_line(one.reason)}")
    lines += [*_table(report), *_tags(report)]
    if report.total_tokens is not None:
        cost = f", {report.cost_usd:.4f} USD" if report.cost_usd is not None and report.scripted is None else ""
        lines.append(f"🧮 {report.total_tokens:,} tokens{cost}")
    if report.scripted is not None:
        lines.append("🎭 the verdicts were scripted: this check says nothing of a real judge")
    lines.append(verdict_line(report, minimum))
    return lines


def verdict_line(report: CheckReport, minimum: Fraction | None) -> str:
    """`📊 34/36 agree (94.4 %), Cohen's kappa 0.89, minimum 90 %: check passed`."""
    share = Fraction(report.agreed, report.total)
    kappa = "not defined" if report.kappa is None else f"{report.kappa:.2f}"
    line = (
        f"📊 {report.agreed}/{report.total} agree ({percent(share, minimum or Fraction(0))} %), Cohen's kappa {kappa}"
    )
    if report.not_judged:
        line += f", {report.not_judged} without a verdict"
    if minimum is not None:
        wanted = f"{float(minimum * 100):.4f}".rstrip("0").rstrip(".")
        line += f", minimum {wanted} %"
    if report.scripted is not None:
        line += " (scripted)"
    return line if passed(report, None) and minimum is None else f"{line}: check {_word(passed(report, minimum))}"


def passed(report: CheckReport, minimum: Fraction | None) -> bool:
    """Everything was judged, and the agreement reaches the minimum where one was asked for."""
    enough = minimum is None or Fraction(report.agreed, report.total) >= minimum
    return enough and not report.not_judged


def _word(good: bool) -> str:
    return "passed" if good else "failed"


def _table(report: CheckReport) -> list[str]:
    confusion = report.confusion
    missing = {label: sum(one.label == label for one in report.without_verdict) for label in ("PASS", "FAIL")}
    rows = [
        ("", "judged PASS", "judged FAIL", "no verdict"),
        ("labelled PASS", str(confusion.pass_pass), str(confusion.pass_fail), str(missing["PASS"])),
        ("labelled FAIL", str(confusion.fail_pass), str(confusion.fail_fail), str(missing["FAIL"])),
    ]
    return ["", *(f"{name:<13}" + "".join(f"{cell:>14}" for cell in cells) for name, *cells in rows), ""]


def _tags(report: CheckReport) -> list[str]:
    if not report.tags:
        return []
    return ["by tag: " + ", ".join(f"{one.tag} {one.agreed}/{one.total}" for one in report.tags)]


def _one_line(text: str) -> str:
    return " ".join(text.split())
