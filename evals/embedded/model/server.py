"""The scripted model as a running server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from evals.embedded.model.app import Service, build_app
from evals.embedded.model.loading import load_scripts
from evals.embedded.model.records import Records, RequestRecord
from evals.embedded.model.script import Script
from evals.embedded.serving import LoopbackServer


class ScriptedModel:
    """A loopback server that answers as a model would, from a script. Use it as a context manager.

    It speaks the Anthropic Messages API and OpenAI chat completions. ``record_bodies`` keeps every request's body
    in `requests`; without it memory stays flat over any number of requests.
    """

    def __init__(self, script: Script, *, host: str = "127.0.0.1", port: int = 0, record_bodies: bool = False) -> None:
        self._records = Records()
        self._service = Service(script, self._records, record_bodies=record_bodies)
        self._server = LoopbackServer(build_app(self._service), host, port)

    @classmethod
    def from_files(
        cls,
        paths: Iterable[Path | str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        record_bodies: bool = False,
    ) -> ScriptedModel:
        """A server for several script files. Raises TwogateError with every problem of every file."""
        return cls(load_scripts(paths), host=host, port=port, record_bodies=record_bodies)

    @property
    def base_url(self) -> str:
        """For ANTHROPIC_BASE_URL; valid inside the ``with`` block."""
        return self._server.url

    @property
    def openai_base_url(self) -> str:
        """For clients of the OpenAI API; valid inside the ``with`` block."""
        return f"{self._server.url}/v1"

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests seen so far, in the order of arrival: a copy, from any thread."""
        return self._records.copy()

    def __enter__(self) -> ScriptedModel:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service.close()
        self._server.__exit__(kind, error, trace)
