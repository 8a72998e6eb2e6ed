"""The store, served on loopback from a thread of this process."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from evals.embedded.langfuse.app import create_app
from evals.embedded.langfuse.database import Database
from evals.embedded.langfuse.settings import DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY, Project, StoreSettings
from evals.embedded.serving import LoopbackServer


class EmbeddedStore:
    """A Langfuse-compatible server over an SQLite file, for as long as a ``with`` block lasts.

    Several processes may serve the same file at once. Entering raises TwogateError when the file, the
    address or a shipped dataset cannot be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        shipped_datasets: Path | None = None,
        refresh_shipped: bool = True,
        refuse_score_arrays: bool = False,
        public_key: str = DEFAULT_PUBLIC_KEY,
        secret_key: str = DEFAULT_SECRET_KEY,
        project: Project | None = None,
    ) -> None:
        self._path = path
        self._host = host
        self._port = port
        self._shipped = shipped_datasets
        self._refresh_shipped = refresh_shipped
        self._settings = StoreSettings(
            project=project or Project(),
            public_key=public_key,
            secret_key=secret_key,
            refuse_score_arrays=refuse_score_arrays,
        )
        self._stack = ExitStack()
        self._server: LoopbackServer | None = None

    @property
    def base_url(self) -> str:
        """For LANGFUSE_BASE_URL; valid inside the ``with`` block."""
        assert self._server is not None, "the store is not running"
        return self._server.url

    @property
    def public_key(self) -> str:
        """For LANGFUSE_PUBLIC_KEY."""
        return self._settings.public_key

    @property
    def secret_key(self) -> str:
        """For LANGFUSE_SECRET_KEY."""
        return self._settings.secret_key

    @property
    def project_id(self) -> str:
        """The id of the store's one project."""
        return self._settings.project.id

    def __enter__(self) -> EmbeddedStore:
        with ExitStack() as stack:
            database = Database(self._path)
            stack.callback(database.close)
            app = create_app(database, self._settings, self._shipped, refresh_shipped=self._refresh_shipped)
            self._server = stack.enter_context(LoopbackServer(app, self._host, self._port))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._server = None
