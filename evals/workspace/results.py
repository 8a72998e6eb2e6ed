"""What the repository server's tools return, as the schemas that clients and models see."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from evals.workspace.report import VerificationReport

MAX_OUTPUT_CHARS: Final = 4_000


def _too_deep() -> Any:
    # Left out where there are none, as nearly always: a model reads every character of a result.
    return Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Directories that were left out because they nest too deep, the first 10; give one as path. "
        "Not there when nothing was left out.",
    )


class _Result(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FileList(_Result):
    """Files below a directory."""

    path: str = Field(description="The directory that was listed.")
    files: list[str] = Field(description="Paths from the repository's root, sorted.")
    count: int = Field(description="How many files are returned.")
    truncated: bool = Field(description="Whether there are more; narrow path or pattern, or raise max_results.")
    too_deep: list[str] = _too_deep()


class FileText(_Result):
    """A file, or a range of its lines."""

    path: str
    start_line: int = Field(description="First line returned, from 1; 0 for an empty file.")
    end_line: int = Field(description="Last line returned; 0 for an empty file.")
    total_lines: int = Field(description="How many lines the file has.")
    text: str = Field(description="The lines, exact, joined by line feeds.")
    next_start_line: int | None = Field(description="Where to go on reading; null when all asked for is here.")


class Hit(_Result):
    """One matching line."""

    path: str
    line: int = Field(description="Line number, from 1.")
    text: str = Field(description="The line; very long ones are cut around the match.")
    before: list[str] = Field(description="Context lines before it that no other match shows.")
    after: list[str] = Field(description="Context lines after it that no other match shows.")


class SearchHits(_Result):
    """The matching lines."""

    query: str
    matches: list[Hit]
    count: int = Field(description="How many matching lines are returned.")
    truncated: bool = Field(
        description="Whether there are more, past max_results or 60,000 characters; narrow path or glob."
    )
    files_searched: int
    files_skipped: int = Field(description="Files left out: not text, or too large.")
    too_deep: list[str] = _too_deep()


class CheckResult(_Result):
    """One thing that had to hold."""

    kind: Literal["required_file", "required_pattern", "forbidden_pattern", "command", "determinism"]
    file: str | None
    pattern: str | dict[str, str] | None = Field(
        description='Literal text, or {"regex": "…"}; null where the kind has none.'
    )
    passed: bool
    detail: str = Field(description="Where it was found, or what is wrong.")


class RunResult(_Result):
    """One run of the task's command."""

    run: int
    exit_status: int | None
    signal: str | None
    timed_out: bool
    error: str | None
    duration_seconds: float
    output_digest: str
    truncated: bool
    stdout: str = Field(description="What it printed; of a long text the end.")
    stderr: str = Field(description="What it printed as errors; of a long text the end.")


class DifferenceResult(_Result):
    """Where repeated runs first differ."""

    stream: Literal["exit status", "stdout", "stderr"]
    line: int | None
    run: int
    expected: str | None
    found: str | None


class Verification(_Result):
    """The verification report, schema version 1."""

    schema_version: Literal[1]
    task_id: str
    passed: bool = Field(description="Whether every check passed.")
    deterministic: bool | None = Field(description="Whether repeated runs agree; null when the command ran once.")
    checks: list[CheckResult]
    runs: list[RunResult]
    first_difference: DifferenceResult | None
    normalised: list[str] = Field(description="What is known to vary and was put aside before comparing.")
    sandbox: Literal["none", "bwrap"]
    not_copied: list[dict[str, str]]

    @classmethod
    def of(cls, report: VerificationReport) -> Verification:
        """The report with each run's output cut to its end: a model's context is not a log."""
        result = cls.model_validate(report.as_json())
        for run in result.runs:
            run.stdout, run.stderr = _end(run.stdout), _end(run.stderr)
        return result


def _end(text: str) -> str:
    left_out = len(text) - MAX_OUTPUT_CHARS
    return text if left_out <= 0 else f"… ({left_out} characters before this left out)\n{text[left_out:]}"
