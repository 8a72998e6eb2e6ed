"""What a verification found. The JSON form is versioned; docs/verifier.md describes it key by key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from evals.workspace.compare import Difference
from evals.workspace.copying import Skipped
from evals.workspace.sandbox import Sandbox
from evals.workspace.task import Pattern

SCHEMA_VERSION: Final = 1

CheckKind = Literal["required_file", "required_pattern", "forbidden_pattern", "command", "determinism"]


@dataclass(frozen=True)
class Check:
    """One thing that had to hold. `file` and `pattern` are None where the kind has none."""

    kind: CheckKind
    file: str | None
    pattern: Pattern | None
    passed: bool
    detail: str

    def as_json(self) -> dict[str, Any]:
        """Keys in the documented order."""
        return {
            "kind": self.kind,
            "file": self.file,
            "pattern": self.pattern.as_json() if self.pattern else None,
            "passed": self.passed,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Run:
    """One run of the command. `stdout` and `stderr` are the captured, normalised text; `output_digest` is over both."""

    number: int
    exit_status: int | None
    signal: str | None
    timed_out: bool
    error: str | None
    duration_seconds: float
    output_digest: str
    truncated: bool
    stdout: str
    stderr: str

    @property
    def status(self) -> str:
        """How it ended, in a few words; what the comparison of repeats compares."""
        if self.error is not None:
            return self.error
        if self.timed_out:
            return "timed out"
        return f"killed by {self.signal}" if self.signal is not None else f"exit status {self.exit_status}"

    def as_json(self) -> dict[str, Any]:
        """Keys in the documented order."""
        return {
            "run": self.number,
            "exit_status": self.exit_status,
            "signal": self.signal,
            "timed_out": self.timed_out,
            "error": self.error,
            "duration_seconds": round(self.duration_seconds, 3),
            "output_digest": self.output_digest,
            "truncated": self.truncated,
            "stdout": self.stdout,
            "stderr": self.stderr,
        }


@dataclass(frozen=True)
class VerificationReport:
    """The outcome of one task in one workspace. `deterministic` is None when the command ran once only: nothing
    was compared."""

    task_id: str
    checks: tuple[Check, ...]
    runs: tuple[Run, ...]
    deterministic: bool | None
    first_difference: Difference | None
    normalised: tuple[str, ...]
    sandbox: Sandbox
    not_copied: tuple[Skipped, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed; that the command succeeds and that repeats agree are checks too."""
        return all(check.passed for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """Schema version 1, keys in the documented order."""
        difference = self.first_difference
        return {
            "schema_version": SCHEMA_VERSION,
            "task_id": self.task_id,
            "passed": self.passed,
            "deterministic": self.deterministic,
            "checks": [check.as_json() for check in self.checks],
            "runs": [run.as_json() for run in self.runs],
            "first_difference": None
            if difference is None
            else {
                "stream": difference.stream,
                "line": difference.line,
                "run": difference.run,
                "expected": difference.expected,
                "found": difference.found,
            },
            "normalised": list(self.normalised),
            "sandbox": self.sandbox,
            "not_copied": [{"path": each.path, "reason": each.reason} for each in self.not_copied],
        }

    def to_json(self) -> str:
        """`as_json` as text, indented, with a line feed at its end. Any text it holds can be written as UTF-8."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=True) + "\n"

    def to_text(self) -> str:
        """For people: one line a check, then what a failed run printed last."""
        lines = [f"task {self.task_id}: {'passed' if self.passed else 'FAILED'}"]
        for check in self.checks:
            subject = " ".join(
                part
                for part in (check.file, _pattern_text(check.pattern) if check.pattern else None)
                if part is not None
            )
            mark = "pass" if check.passed else "FAIL"
            lines.append(f"  {mark}  {check.kind}{f' {subject}' if subject else ''}: {check.detail}")
        lines += [
            f"  run {run.number}: {run.status}, {run.duration_seconds:.2f} s, {run.output_digest[:19]}"
            f"{', output truncated' if run.truncated else ''}"
            for run in self.runs
        ]
        if self.normalised:
            lines.append(f"  put aside before comparing: {', '.join(self.normalised)}")
        lines += [f"  not copied: {each.path} ({each.reason})" for each in self.not_copied]
        failed = next((run for run in self.runs if run.status != "exit status 0"), None)
        if failed is not None:
            tail = (failed.stderr or failed.stdout).rstrip().splitlines()[-20:]
            if tail:
                lines += [f"  end of run {failed.number}'s output:", *(f"    {line}" for line in tail)]
        return "\n".join(_printable(line) for line in lines) + "\n"


def _printable(line: str) -> str:
    """A line that cannot steer a terminal: what a command printed is not to be trusted."""
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode() for char in line
    )


def _pattern_text(pattern: Pattern) -> str:
    return f"/{pattern.text}/" if pattern.regex else repr(pattern.text)
