"""What the scripted model saw: one record a request."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

#: Older records make room for newer ones.
MAX_RECORDS = 100_000

Kind = Literal["agent", "judge", "default", "unmatched", "title", "quota", "count_tokens", "models", "invalid", "other"]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request, in the order of arrival.

    ``query`` is the text the entry matched, or what was asked in vain; ``turn`` counts from 0; ``conversation`` is
    the number of the conversation on that entry, from 0; ``fault`` the kind of the scripted fault; ``status`` the
    HTTP status, or None when the connection broke or nothing was answered; ``body`` the parsed request, only with
    ``record_bodies=True``.
    """

    kind: Kind
    path: str
    query: str = ""
    model: str = ""
    entry: int | None = None
    turn: int = 0
    conversation: int | None = None
    past_end: bool = False
    stream: bool = False
    fault: str | None = None
    status: int | None = None
    body: Any = None


class Records:
    """The newest `MAX_RECORDS` records; written by the server's thread, read by any."""

    def __init__(self) -> None:
        self._records: deque[RequestRecord] = deque(maxlen=MAX_RECORDS)
        self._lock = threading.Lock()

    def add(self, record: RequestRecord) -> None:
        """Keep a record."""
        with self._lock:
            self._records.append(record)

    def copy(self) -> list[RequestRecord]:
        """All records so far."""
        with self._lock:
            return list(self._records)
