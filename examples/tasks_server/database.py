"""One SQLite database, shared safely by threads of this process and by other processes."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.tasks_server.errors import BusyError

SCHEMA_VERSION = 1
BUSY_SECONDS = 10.0

_SCHEMA = (
    """
    CREATE TABLE tasks (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        action TEXT NOT NULL,
        input TEXT NOT NULL,
        published INTEGER NOT NULL DEFAULT 0,
        read_only INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE schedules (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
        cron TEXT NOT NULL,
        timezone TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        input TEXT NOT NULL,
        read_only INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX schedules_task ON schedules (task_id)",
    """
    CREATE TABLE runs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        status TEXT NOT NULL,
        input TEXT NOT NULL,
        result TEXT,
        error TEXT,
        started_at TEXT NOT NULL,
        finished_at TEXT NOT NULL,
        UNIQUE (task_id, number)
    )
    """,
)


class DatabaseError(Exception):
    """The file can't be used as the database; the text is one line for the operator."""


class Database:
    """A connection behind a lock. ``path`` None keeps the state in memory, private to this process."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA foreign_keys = ON")
            if path is not None:
                self._use_wal()
            self._create()
        except sqlite3.Error as error:
            raise DatabaseError(f"cannot use {path} as the database: {error}") from None

    def _use_wal(self) -> None:
        # SQLite does not wait for its busy timeout when two processes switch a new file to WAL at once.
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _create(self) -> None:
        with self.writing() as db:
            found: int = db.execute("PRAGMA user_version").fetchone()[0]
            if found == SCHEMA_VERSION:
                return
            if found != 0 or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise DatabaseError(
                    f"the database is not one of this server (version {found}, not {SCHEMA_VERSION}); name another file"
                )
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the database."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer can come between; rolled back when the block raises."""
        # IMMEDIATE takes the write lock at once: a lock upgrade half-way could not wait for other writers.
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._connection.execute(begin)
                try:
                    yield self._connection
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                    raise
                raise BusyError(
                    "service-busy",
                    "The service is busy with other changes.",
                    "Nothing was changed; try again in a few seconds.",
                ) from None

    def close(self) -> None:
        """Close the connection; the last one to close a file checkpoints its write-ahead log."""
        with self._lock:
            self._connection.close()
