"""Holding a workspace to a task: its files and patterns first, then its command, run in fresh copies."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from evals.errors import TwogateError
from evals.workspace.bounded import PatternTimeoutError, in_worker
from evals.workspace.command import DEFAULT_OUTPUT_BYTES, CommandResult, run_command
from evals.workspace.compare import RunOutput, first_difference
from evals.workspace.copying import Skipped, copy_workspace
from evals.workspace.normalising import Normaliser
from evals.workspace.paths import WorkspaceError
from evals.workspace.report import Check, Run, VerificationReport
from evals.workspace.safe import SafeWorkspace
from evals.workspace.sandbox import INSIDE, INSIDE_TMP, Sandbox, find_bwrap, launcher
from evals.workspace.scratch import Scratch
from evals.workspace.task import Pattern, Task

_REGEX_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Options:
    """How commands run. `environment`: variables passed beside the fixed ones; `max_output_bytes` a stream."""

    sandbox: Sandbox = "none"
    environment: Mapping[str, str] = field(default_factory=dict)
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES


def verify(
    task: Task,
    workspace: SafeWorkspace,
    options: Options | None = None,
    cancel: threading.Event | None = None,
) -> VerificationReport:
    """Check `workspace` against `task`; the workspace itself is only read.

    Raises `TwogateError` when the sandbox asked for cannot be had or a copy cannot be made, and `RunCancelledError`
    when `cancel` is set meanwhile. A command that cannot be started is a failed check, not an exception.
    """
    options = options or Options()
    bwrap = find_bwrap() if options.sandbox == "bwrap" else None
    checks = [_required_file(workspace, path) for path in task.required_files]
    checks += [_required_pattern(workspace, path, pattern) for path, pattern in task.required_patterns]
    checks += [_forbidden_pattern(workspace, path, pattern) for path, pattern in task.forbidden_patterns]
    runs: list[Run] = []
    rules: set[str] = set()
    not_copied: tuple[Skipped, ...] = ()
    outputs: list[RunOutput] = []
    with Scratch() as scratch:
        for number in range(1, task.repeat_count + 1):
            streams = _Streams(scratch.path, options)
            result, not_copied = _run_once(task, workspace, scratch.path, options, bwrap, streams, cancel)
            run, output, used = _as_run(number, result, scratch.clear(), streams)
            runs.append(run)
            outputs.append(output)
            rules |= used
    difference = first_difference(outputs)
    checks.append(_command_check(runs, task))
    if len(runs) > 1:
        detail = f"{len(runs)} runs agree in exit status and output"
        if difference is not None:
            where = difference.stream if difference.line is None else f"{difference.stream} line {difference.line}"
            detail = (
                f"nondeterministic: run {difference.run} differs from run 1 in {where}: "
                f"{difference.expected!r} became {difference.found!r}"
            )
        checks.append(Check("determinism", None, None, difference is None, detail))
    return VerificationReport(
        task_id=task.task_id,
        checks=tuple(checks),
        runs=tuple(runs),
        deterministic=None if len(runs) == 1 else difference is None,
        first_difference=difference,
        normalised=tuple(sorted(rules)),
        sandbox=options.sandbox,
        not_copied=not_copied,
    )


def passed_variables(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The operator's own additions to a command's environment. Raises `TwogateError` naming each that is not set."""
    wanted = tuple(names)
    missing = [f"--pass-env {name}: the variable is not set" for name in wanted if name not in environment]
    if missing:
        raise TwogateError(missing)
    return {name: environment[name] for name in wanted}


def command_environment(home: str, scratch: str, passed: Mapping[str, str]) -> dict[str, str]:
    """All variables a command sees. PATH is the caller's, with this interpreter's folder at its end so that
    ``python`` is always found; `passed` are the operator's own additions."""
    search = os.environ.get("PATH", os.defpath).split(os.pathsep)
    search.append(str(Path(sys.executable).parent))
    return {
        "PATH": os.pathsep.join(dict.fromkeys(each for each in search if each)),
        "HOME": home,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        **passed,
    }


def _run_once(
    task: Task,
    workspace: SafeWorkspace,
    scratch: Path,
    options: Options,
    bwrap: str | None,
    streams: _Streams,
    cancel: threading.Event | None,
) -> tuple[CommandResult, tuple[Skipped, ...]]:
    copy, home, temporary = scratch / "workspace", scratch / "home", scratch / "tmp"
    skipped = copy_workspace(workspace, copy)
    try:
        home.mkdir(mode=0o700)
        temporary.mkdir(mode=0o700)
    except OSError as error:
        raise TwogateError(f"the scratch folders cannot be made: {error.strerror}") from None
    before: tuple[str, ...] = ()
    environment = command_environment(str(home), str(temporary), options.environment)
    if bwrap is not None:
        # This interpreter first: the caller's `python` may be a script that reads its home folder, such as pyenv's.
        path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        environment |= {"HOME": INSIDE_TMP, "TMPDIR": INSIDE_TMP, "PATH": path}
        before = launcher(bwrap, str(copy), environment["PATH"])
    result = run_command(
        task.command,
        launcher=before,
        cwd=str(copy),
        env=environment,
        timeout=task.timeout_seconds,
        max_output_bytes=options.max_output_bytes,
        on_output=streams.feed,
        cancel=cancel,
    )
    return result, skipped


class _Streams:
    """Takes a run's output as it comes, for it may be longer than what is kept of it."""

    def __init__(self, scratch: Path, options: Options) -> None:
        paths = [(str(scratch / "workspace"), "<workspace>"), (str(scratch), "<scratch folder>")]
        if options.sandbox == "bwrap":
            paths.insert(0, (INSIDE, "<workspace>"))
        self.stdout = Normaliser(paths, options.max_output_bytes)
        self.stderr = Normaliser(paths, options.max_output_bytes)

    def feed(self, stream: Literal["stdout", "stderr"], chunk: bytes) -> None:
        (self.stdout if stream == "stdout" else self.stderr).feed(chunk)


def _as_run(number: int, result: CommandResult, left: str | None, streams: _Streams) -> tuple[Run, RunOutput, set[str]]:
    stdout, stderr = streams.stdout.finish(), streams.stderr.finish()
    run = Run(
        number=number,
        exit_status=result.exit_status,
        signal=result.signal,
        timed_out=result.timed_out,
        error=result.error or (left if result.clean else "left a process that could not be killed"),
        duration_seconds=result.duration,
        output_digest="",
        truncated=stdout.whole is not None or stderr.whole is not None,
        stdout=stdout.text,
        stderr=stderr.text,
    )
    output = RunOutput(run.status, stdout, stderr)
    return replace(run, output_digest=output.digest), output, {*stdout.rules, *stderr.rules}


def _required_file(workspace: SafeWorkspace, path: str) -> Check:
    try:
        with workspace.open_file(path):
            return Check("required_file", path, None, True, "is there")
    except WorkspaceError as error:
        return Check("required_file", path, None, False, error.message)


def _required_pattern(workspace: SafeWorkspace, path: str, pattern: Pattern) -> Check:
    try:
        line = _first_line(workspace, path, pattern)
    except (WorkspaceError, PatternTimeoutError) as error:
        return Check("required_pattern", path, pattern, False, f"could not be checked: {error.lines[0]}")
    detail = f"found in line {line}" if line is not None else "not found"
    return Check("required_pattern", path, pattern, line is not None, detail)


def _forbidden_pattern(workspace: SafeWorkspace, path: str, pattern: Pattern) -> Check:
    # A file that is missing or unreadable cannot be shown to be free of the pattern.
    try:
        line = _first_line(workspace, path, pattern)
    except (WorkspaceError, PatternTimeoutError) as error:
        return Check("forbidden_pattern", path, pattern, False, f"could not be checked: {error.lines[0]}")
    detail = f"found in line {line}" if line is not None else "not found, as it should be"
    return Check("forbidden_pattern", path, pattern, line is None, detail)


def _first_line(workspace: SafeWorkspace, path: str, pattern: Pattern) -> int | None:
    if not pattern.regex:
        return pattern.first_line(workspace.read_text(path))
    request = {"file": path, "pattern": {"text": pattern.text, "regex": True}}
    line = in_worker("match", request, _REGEX_SECONDS, workspace)["line"]
    return None if line is None else int(line)


def _command_check(runs: Sequence[Run], task: Task) -> Check:
    failed = [run for run in runs if run.status != "exit status 0"]
    if not failed:
        return Check("command", None, None, True, f"exit status 0 in {len(runs)} of {len(runs)} runs")
    first = failed[0]
    status = first.status
    if first.timed_out:
        status = f"timed out after {task.timeout_seconds:g} s"
    detail = f"{status} in run {first.number}; {len(failed)} of {len(runs)} runs failed"
    return Check("command", None, None, False, detail)
