"""A running store and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evals.embedded.langfuse import EmbeddedStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """A new store."""
    with EmbeddedStore(tmp_path / "langfuse.db") as running:
        yield running


@pytest.fixture
def client(store: EmbeddedStore) -> Iterator[httpx.Client]:
    """An HTTP client with the store's keys."""
    with httpx.Client(base_url=store.base_url, auth=(store.public_key, store.secret_key), timeout=60) as opened:
        yield opened
