"""``twogate store`` as a process: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

_TWOGATE = [sys.executable, "-m", "evals"]


def _start(folder: Path, *options: str, **environment: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """A running store and the variables that it printed."""
    process = subprocess.Popen(
        [*_TWOGATE, "store", "--port", "0", *options],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    if not lines[0].startswith("Twogate store on http://"):
        process.kill()
        pytest.fail(f"the store did not start: {lines} {process.communicate()[1]}")
    return process, dict(re.findall(r"^export (\w+)=(\S+)", "".join(lines[1:]), re.MULTILINE))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    process, printed = _start(tmp_path)
    keys = (printed["LANGFUSE_PUBLIC_KEY"], printed["LANGFUSE_SECRET_KEY"])
    answer = httpx.get(f"{printed['LANGFUSE_BASE_URL']}/api/public/projects", auth=keys)
    assert answer.json()["data"][0]["name"] == "Twogate"
    process.send_signal(number)
    output, problems = process.communicate(timeout=30)
    assert (process.returncode, output, problems) == (0, "", "")
    assert (tmp_path / ".twogate" / "langfuse.db").is_file()


def test_secret_key_is_not_printed(tmp_path: Path) -> None:
    process, printed = _start(tmp_path, "--db", "own.db", TWOGATE_STORE_SECRET_KEY="sk-lf-mine")
    base = printed["LANGFUSE_BASE_URL"]
    public = printed["LANGFUSE_PUBLIC_KEY"]
    assert "sk-lf-mine" not in str(printed)
    assert httpx.get(f"{base}/api/public/projects", auth=(public, "sk-lf-mine")).status_code == 200
    assert httpx.get(f"{base}/api/public/projects", auth=(public, "sk-lf-twogate-embedded")).status_code == 401
    process.terminate()
    output, problems = process.communicate(timeout=30)
    assert "sk-lf-mine" not in output + problems


def _refused(folder: Path, *options: str) -> list[str]:
    ended = subprocess.run(
        [*_TWOGATE, "store", *options], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, ""), ended
    return ended.stderr.splitlines()


def test_address_for_others_needs_a_flag_and_a_secret(tmp_path: Path) -> None:
    lines = _refused(tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert len(lines) == 2
    assert lines[0].endswith("add --allow-remote if you mean it")
    assert "TWOGATE_STORE_SECRET_KEY" in lines[1]
    (line,) = _refused(tmp_path, "--host", "0.0.0.0", "--port", "0", "--allow-remote")
    assert "TWOGATE_STORE_SECRET_KEY" in line
    assert not (tmp_path / ".twogate").exists()


def test_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (line,) = _refused(tmp_path, "--port", str(port))
    assert line.startswith(f"error: cannot listen on 127.0.0.1:{port}")


def test_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes\n" * 100)
    (line,) = _refused(tmp_path, "--db", "notes.db", "--port", "0")
    assert line.startswith("error: cannot use notes.db as a store")
    assert line.endswith("; move the file away, or choose another by twogate store --db")
