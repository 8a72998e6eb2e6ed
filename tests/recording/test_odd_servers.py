"""A Langfuse that answers something else, or nothing: one line, no traceback, and never longer than it must take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from evals.errors import TwogateError
from evals.recording import client as client_module
from evals.recording.client import Recorder, open_recorder
from evals.recording.dataset import fetch_dataset
from evals.recording.experiment import project_id
from evals.recording.scores import PlacedScore, read_back
from evals.recording.server import LangfuseServer
from evals.recording.sweep import sweep_experiment
from evals.scoring import Score
from evals.settings import LangfuseKeys

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Odd(ThreadingHTTPServer):
    """Answers every request with `body`, or never while `hang` is set."""

    daemon_threads = True
    body = b"{}"
    hang = False
    closing: threading.Event


class Handler(BaseHTTPRequestHandler):
    server: Odd

    def do_GET(self) -> None:
        if self.server.hang:
            self.server.closing.wait(30)
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def odd() -> Iterator[Odd]:
    server = Odd(("127.0.0.1", 0), Handler)
    server.closing = threading.Event()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.closing.set()
    server.shutdown()
    server.server_close()


def langfuse(server: Odd, name: str) -> LangfuseServer:
    keys = LangfuseKeys(f"pk-{name}", "sk", f"http://127.0.0.1:{server.server_port}")
    return LangfuseServer(keys, embedded=False)


ASKED: dict[str, Callable[[Recorder], object]] = {
    "project": project_id,
    "dataset": lambda recorder: fetch_dataset(recorder, "cases"),
    "sweep": lambda recorder: sweep_experiment(recorder, "p", name="run", since=NOW, patience=0),
}


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'{"data": [{"id": 1}], "meta": {}}', b"<html>"])
@pytest.mark.parametrize("asked", ASKED)
def test_an_answer_of_another_shape_is_one_line(odd: Odd, asked: str, body: bytes) -> None:
    odd.body = body
    with open_recorder(langfuse(odd, f"{asked}-{len(body)}")) as recorder:
        with pytest.raises(TwogateError) as raised:
            ASKED[asked](recorder)
        assert len(raised.value.lines) == 1
        score = PlacedScore(Score(name="x", value=1.0), trace_id="t")
        read = read_back(
            recorder, experiment_id="e", since=NOW, trials=1, trace_ids=["t"], scores=[score], patience=0.1
        )
    assert not read.complete
    assert read.problem


def test_a_server_that_hangs_is_waited_for_once(odd: Odd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_CLOSING", 0.5)
    monkeypatch.setattr(client_module, "_STUCK_CLOSING", 0.1)
    odd.hang = True
    with open_recorder(langfuse(odd, "hang")) as recorder:
        recorder.tracer.start_span("one").end()
        assert not recorder.flush()
        assert recorder.stuck.is_set()
        before = time.monotonic()
    assert time.monotonic() - before < 20, "closing waited for what was known not to come"
