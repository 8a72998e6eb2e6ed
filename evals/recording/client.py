"""The Langfuse SDK client, set up so that nothing of it depends on or leaks into the process around it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from langfuse import Langfuse
from langfuse.api.core import ApiError
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from evals.logs import redirected
from evals.recording.server import LangfuseServer
from evals.redact import Redactor
from evals.versions import version_of

_TIMEOUT = 20  # seconds a request to Langfuse may take
_CLOSING = 60.0  # seconds Langfuse may take to accept what is still queued
_STUCK_CLOSING = 2.0  # the same once it has shown that it does not
READ_ERRORS = (ApiError, httpx.HTTPError, ValueError)
"""What reading from a Langfuse server may raise: its refusals, no answer, an answer of another shape."""
NOT_LANGFUSE = "answers something else than Langfuse does; check LANGFUSE_BASE_URL"
_TRACER = "langfuse-sdk"  # the scope whose spans the SDK exports
_TRACING_OFF = ("OTEL_SDK_DISABLED", "LANGFUSE_TRACING_ENABLED")
_LOGGERS = ("langfuse", "opentelemetry")


@dataclass(frozen=True)
class Recorder:
    """A client and the tracer that makes spans with real start and end times."""

    client: Langfuse
    tracer: otel.Tracer
    server: LangfuseServer
    stuck: threading.Event = field(default_factory=threading.Event)
    """Set when the server did not take in time what was sent: nothing is waited for again."""

    def flush(self) -> bool:
        """Send what is queued; False when it took too long, and goes on in the background."""
        if not _within(_CLOSING, self.client.flush):
            self.stuck.set()
        return not self.stuck.is_set()


@contextmanager
def open_recorder(server: LangfuseServer, redactor: Redactor | None = None) -> Iterator[Recorder]:
    """A client for the length of the block; flushed and shut down at its end, in bounded time.

    It has a tracer provider of its own: the global one may be somebody else's. redactor: keeps secrets out of every
    observation's input, output and metadata, whoever writes it.
    """
    keys = server.keys
    # Recording is what this is for: variables that turn tracing off in the programs around it do not count here.
    for name in _TRACING_OFF:
        os.environ.pop(name, None)
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    client = Langfuse(
        public_key=keys.public_key,
        secret_key=keys.secret_key,
        base_url=keys.base_url,
        timeout=_TIMEOUT,
        sample_rate=1.0,
        tracer_provider=provider,
        mask=None if redactor is None else lambda *, data, **_: redactor.value(data),
    )
    try:
        # The SDK exports the spans of its own scope and its own key alone.
        tracer = provider.get_tracer(_TRACER, version_of("langfuse"), attributes={"public_key": keys.public_key})
        recorder = Recorder(client=client, tracer=tracer, server=server)
        try:
            yield recorder
        finally:
            seconds = _STUCK_CLOSING if recorder.stuck.is_set() else _CLOSING
            if _within(seconds, client.shutdown):
                _within(seconds, provider.shutdown)
    finally:
        _forget(keys.public_key)


def _within(seconds: float, action: object) -> bool:
    """Run a blocking call on a daemon thread, so that a server that hangs cannot hold the process."""
    assert callable(action)
    done = threading.Event()

    def run() -> None:
        try:
            action()
        finally:
            done.set()

    threading.Thread(target=run, name="langfuse-closing", daemon=True).start()
    return done.wait(seconds)


def _forget(public_key: str) -> None:
    """The SDK keeps one set of resources a public key for good; a later client must not get this one's, shut down."""
    from langfuse._client.resource_manager import LangfuseResourceManager

    with LangfuseResourceManager._lock:
        LangfuseResourceManager._instances.pop(public_key, None)


def log_to(path: Path) -> AbstractContextManager[None]:
    """The SDK's own log lines go to a file for the length of the block."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    return redirected(_LOGGERS, handler)
