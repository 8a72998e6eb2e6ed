"""What a run needs, looked at one by one without spending anything."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evals.errors import TwogateError
from evals.items import DEFAULT_DATASETS
from evals.settings import AGENT_VARIABLES, ANTHROPIC_API_KEY, LANGFUSE_VARIABLES, OPENROUTER_API_KEY, Settings
from evals.target import load_target
from evals.tool_listing import list_all

_VERSION_TIMEOUT = 30  # seconds Claude Code may take to say its version


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ❌: a run would fail; ⚠️: something is off or absent, and a run can do without."""

    mark: Literal["✅", "⚠️", "❌"]
    subject: str
    message: str


def examine(
    settings: Settings, *, target: Path | None = None, subscription: bool = False, embedded: bool = False
) -> Iterator[Finding]:
    """Look at everything a run needs, in the order it needs it. Never raises for what it finds."""
    yield from _environment(settings, subscription)
    yield _claude_code()
    yield from _target(settings, target)
    yield from _langfuse(settings, embedded)
    yield _judge(settings)


def _environment(settings: Settings, subscription: bool) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("✅", "python", version)
    env_file = settings.root / ".env"
    if env_file.is_file():
        yield Finding("✅", ".env", f"read from {settings.root}")
    else:
        yield Finding("⚠️", ".env", "not there; copy .env.example, or set the variables in the environment")
    if subscription:
        yield Finding("✅", "model key", "not needed with --subscription: the local Claude login is used")
    elif found := [name for name in AGENT_VARIABLES if settings.get(name)]:
        yield Finding("✅", "model key", f"{found[0]} is set")
    else:
        yield Finding(
            "❌",
            "model key",
            f"{ANTHROPIC_API_KEY} is not set; set it, or use --subscription, --scripted SCRIPT or twogate demo",
        )


def _claude_code() -> Finding:
    import claude_agent_sdk

    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled"
    binary = next((path for name in ("claude", "claude.exe") if (path := bundled / name).is_file()), None)
    command = str(binary) if binary is not None else shutil.which("claude")
    if command is None:
        return Finding(
            "❌", "Claude Code", "claude-agent-sdk has no bundled binary here; reinstall it, or install claude"
        )
    try:
        done = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("❌", "Claude Code", f"does not start: {error}; reinstall claude-agent-sdk")
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[:200]
        return Finding("❌", "Claude Code", f"ends with {done.returncode}: {said}; reinstall claude-agent-sdk")
    which = "bundled" if binary is not None else command
    return Finding("✅", "Claude Code", f"{done.stdout.strip()} ({which})")


def _target(settings: Settings, path: Path | None) -> Iterator[Finding]:
    try:
        target = load_target(settings.root, settings.variables, path)
    except TwogateError as error:
        for line in error.lines:
            yield Finding("❌", "target", line)
        return
    redactor = target.redactor(settings)
    listed = asyncio.run(list_all(target, [None]))
    for server in target.servers:
        launch = server.launch()
        role = "" if server.under_test else ", auxiliary"
        if launch in listed.failed:
            yield Finding("❌", f"target {server.name}", redactor.text(listed.failed[launch]))
            continue
        names = [tool.name for tool in listed.by_launch[launch]]
        if names:
            yield Finding("✅", f"target {server.name}", f"{len(names)} tools: {', '.join(names)}{role}")
        else:
            yield Finding("❌", f"target {server.name}", f"connects but lists no tools{role}")
        # What others' servers do nobody here can mend.
        for line in listed.notices[launch] if server.under_test else ():
            yield Finding("⚠️", f"target {server.name}", redactor.text(line))


def _langfuse(settings: Settings, embedded: bool) -> Iterator[Finding]:
    from evals.recording.client import open_recorder
    from evals.recording.dataset import fetch_dataset
    from evals.recording.experiment import project_id
    from evals.recording.server import open_server

    try:
        with open_server(settings, embedded=embedded) as server, open_recorder(server) as recorder:
            where = "the embedded store" if server.embedded else server.keys.base_url
            project = project_id(recorder)
            hint = "" if not server.embedded else f" (set {', '.join(LANGFUSE_VARIABLES)} for a server of your own)"
            yield Finding("✅", "Langfuse", f"{where}, project {project}{hint}")
            for gate, name in DEFAULT_DATASETS.items():
                try:
                    count = len(fetch_dataset(recorder, name).items)
                except TwogateError as error:
                    yield Finding("⚠️", f"{gate} dataset", error.lines[0])
                else:
                    yield Finding("✅" if count else "⚠️", f"{gate} dataset", f"{name}, {count} active items")
    except TwogateError as error:
        for line in error.lines:
            yield Finding("❌", "Langfuse", line)


def _judge(settings: Settings) -> Finding:
    if settings.get(OPENROUTER_API_KEY):
        return Finding("✅", "judge", f"{OPENROUTER_API_KEY} is set")
    return Finding(
        "⚠️",
        "judge",
        f"{OPENROUTER_API_KEY} is not set; agent items need it, or --claude-judge (tool-call items need none)",
    )
