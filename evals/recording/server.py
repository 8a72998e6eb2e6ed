"""Which Langfuse-compatible server a command talks to: the one the environment names, or the embedded store."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass

from evals.errors import TwogateError
from evals.settings import LANGFUSE_VARIABLES, LangfuseKeys, Settings

STORE_FILE = "langfuse.db"


@dataclass(frozen=True)
class LangfuseServer:
    """A server to record to, and whether it is the embedded store."""

    keys: LangfuseKeys
    embedded: bool


@contextmanager
def open_server(settings: Settings, *, embedded: bool = False, refresh: bool = True) -> Iterator[LangfuseServer]:
    """The server to use, running for the length of the block.

    embedded: use the embedded store even where LANGFUSE_* variables name a server. refresh: bring the shipped
    datasets up to date in it; without, only those it does not have at all are loaded.

    Raises TwogateError when some but not all LANGFUSE_* variables are set, and when none is under CI without
    `embedded`: a gate there would record nowhere and nobody would notice.
    """
    keys = None if embedded else settings.langfuse()
    if keys is not None:
        yield LangfuseServer(keys, embedded=False)
        return
    problems = server_problems(settings, embedded=embedded)
    if problems:
        raise TwogateError(problems)
    from evals.embedded.langfuse import EmbeddedStore

    reach_loopback_directly()
    try:
        settings.state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TwogateError(
            f"{settings.state}: cannot be made: {error.strerror}; runs and the store are kept there"
        ) from None
    file, datasets = settings.state / STORE_FILE, settings.shipped_datasets
    with EmbeddedStore(file, shipped_datasets=datasets, refresh_shipped=refresh) as store:
        keys = LangfuseKeys(public_key=store.public_key, secret_key=store.secret_key, base_url=store.base_url)
        yield LangfuseServer(keys, embedded=True)


def server_problems(settings: Settings, *, embedded: bool = False) -> list[str]:
    """Why `open_server` would refuse these settings, a line each."""
    if embedded:
        return []
    try:
        keys = settings.langfuse()
    except TwogateError as error:
        return list(error.lines)
    if keys is None and settings.ci:
        return [
            f"no {', '.join(LANGFUSE_VARIABLES)} under CI, so results would be recorded nowhere; "
            "set them, or say --embedded to record into a store of this job alone"
        ]
    return []


def reach_loopback_directly(environ: MutableMapping[str, str] | None = None) -> None:
    """Exempt loopback from a proxy the environment names: an embedded server is not reachable through it."""
    environ = os.environ if environ is None else environ
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in environ.get(name, "").split(",") if host.strip()]
        environ[name] = ",".join(dict.fromkeys([*hosts, "127.0.0.1", "localhost"]))
