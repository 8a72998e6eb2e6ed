"""Starts the tasks server as its users do: as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from mcp import StdioServerParameters

ROOT = Path(__file__).resolve().parents[2]
# How long an example takes says nothing about the rules, and a busy machine is slow.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SCRIPT = ROOT / "examples" / "tasks_server" / "__main__.py"


def stdio(*arguments: str) -> StdioServerParameters:
    """What a client needs to launch the server over stdio."""
    return StdioServerParameters(command=sys.executable, args=["-m", "examples.tasks_server", *arguments], cwd=ROOT)


@dataclass(frozen=True)
class Serving:
    """A running server and what it announced, each URL by its first word: ``MCP`` or ``REST``."""

    process: subprocess.Popen[str]
    urls: dict[str, str]


@contextmanager
def serving(*arguments: str, env: dict[str, str] | None = None, announcements: int = 1) -> Iterator[Serving]:
    """A server process that has announced this many URLs; ended with SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.tasks_server", *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        urls: dict[str, str] = {}
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        while len(urls) < announcements:
            line = process.stderr.readline()
            assert line, f"the server ended before it served, with status {process.wait()}"
            if " on http" in line:
                urls[line.split()[0]] = line.split()[-1]
        watchdog.cancel()
        yield Serving(process, urls)
    finally:
        process.terminate()
        process.wait(timeout=20)
        if process.stderr is not None:
            process.stderr.close()
