"""Isolation for commands that are not trusted: bubblewrap, when it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from evals.errors import TwogateError

Sandbox = Literal["none", "bwrap"]

# Where the copy and the scratch folder are inside the sandbox.
INSIDE: Final = "/workspace"
INSIDE_TMP: Final = "/tmp"  # noqa: S108  a tmpfs of the sandbox's own

# Programs and libraries; of /etc only what running programs need, for files such as /etc/shadow stay outside.
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store")
_ETC: Final = (
    "alternatives",
    "group",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
)


def find_bwrap() -> str:
    """The path of a bubblewrap that works here. Raises `TwogateError` when there is none, or it may not isolate."""
    program = shutil.which("bwrap")
    if program is None:
        raise TwogateError(
            "--sandbox bwrap: bubblewrap is not installed; install it (Debian: apt-get install bubblewrap), "
            "or leave --sandbox out for a task you trust"
        )
    probe = subprocess.run(
        [program, *_isolation(), *_system([]), "--", "/bin/sh", "-c", "exit 0"],
        capture_output=True,
        env={},
        check=False,
        timeout=30,
    )
    if probe.returncode != 0:
        words = probe.stderr.decode("utf-8", "replace").strip().splitlines()
        raise TwogateError(
            f"--sandbox bwrap: {program} cannot isolate here ({words[-1] if words else 'no message'}); "
            "allow user namespaces, or leave --sandbox out for a task you trust"
        )
    return program


def launcher(program: str, copy: str, search_path: str) -> tuple[str, ...]:
    """The words to put before a command to run it under bubblewrap: no network, the system read-only, of all files only
    `copy` writable (at ``/workspace``) beside a scratch folder in memory. Programs are looked for in `search_path`."""
    return (
        program,
        *_isolation(),
        *_system(search_path.split(os.pathsep)),
        "--bind",
        copy,
        INSIDE,
        "--chdir",
        INSIDE,
        "--",
    )


def why_not_started(program: str, said: str) -> str:
    """Why bubblewrap did not start `program`, from what it `said` on standard error."""
    last = said.strip().rpartition("\n")[2]
    return last.removeprefix(f"bwrap: execvp {program}: ") or "no message"


def _isolation() -> tuple[str, ...]:
    return ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")


def _system(search_path: Iterable[str]) -> list[str]:
    words: list[str] = []
    for name in _SYSTEM:
        if Path(name).is_symlink():
            words += ["--symlink", str(Path(name).readlink()), name]
        else:
            words += ["--ro-bind-try", name, name]
    for name in _ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", INSIDE_TMP]
    # An interpreter may live elsewhere, such as a virtual environment in a home folder.
    for name in dict.fromkeys([*search_path, sys.prefix, sys.base_prefix]):
        if Path(name).is_absolute() and Path(name) != Path("/") and not _within(name, _SYSTEM):
            words += ["--ro-bind-try", name, name]
    return words


def _within(name: str, folders: Iterable[str]) -> bool:
    return any(Path(name).is_relative_to(folder) for folder in folders)
