"""The SQLite file of the store: one connection an application, short transactions, several processes.

The write-ahead log makes a committed write survive the death of the process (not of the power supply) and
lets other processes read meanwhile; writers of several processes take turns, up to `BUSY_TIMEOUT_S`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evals.errors import TwogateError

BUSY_TIMEOUT_S = 60.0
SCHEMA_VERSION = 1
# Not every command that opens the store has the option.
_ANOTHER_FILE = "move the file away, or choose another by twogate store --db"

_SCHEMA = """
CREATE TABLE datasets (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    description TEXT,
    metadata TEXT,
    input_schema TEXT,
    expected_output_schema TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
-- An id belongs to its first dataset for good, also when the item is deleted.
CREATE TABLE items (
    id TEXT PRIMARY KEY,
    dataset_id TEXT NOT NULL REFERENCES datasets(id),
    seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX items_by_dataset ON items(dataset_id);
CREATE TABLE item_versions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id TEXT NOT NULL,
    dataset_id TEXT NOT NULL,
    status TEXT NOT NULL,
    input TEXT,
    expected_output TEXT,
    metadata TEXT,
    source_trace_id TEXT,
    source_observation_id TEXT,
    created_at INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX item_versions_by_item ON item_versions(dataset_id, item_id, seq);
CREATE TABLE observations (
    trace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    is_root INTEGER NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms INTEGER,
    completion_start_ms INTEGER,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    level TEXT NOT NULL,
    status_message TEXT NOT NULL,
    version TEXT NOT NULL,
    environment TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    trace_name TEXT,
    release TEXT NOT NULL,
    tags TEXT NOT NULL,
    public INTEGER NOT NULL,
    input TEXT,
    output TEXT,
    metadata TEXT NOT NULL,
    model TEXT NOT NULL,
    model_parameters TEXT NOT NULL,
    usage_details TEXT NOT NULL,
    input_usage REAL NOT NULL,
    output_usage REAL NOT NULL,
    total_usage REAL NOT NULL,
    cost_details TEXT NOT NULL,
    input_cost REAL,
    output_cost REAL,
    total_cost REAL NOT NULL,
    prompt_name TEXT NOT NULL,
    prompt_version INTEGER,
    experiment_id TEXT NOT NULL,
    experiment_name TEXT NOT NULL,
    experiment_description TEXT NOT NULL,
    experiment_metadata TEXT NOT NULL,
    experiment_dataset_id TEXT NOT NULL,
    experiment_item_id TEXT NOT NULL,
    experiment_item_version TEXT NOT NULL,
    experiment_item_root_id TEXT NOT NULL,
    experiment_item_metadata TEXT NOT NULL,
    expected_output TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (trace_id, id)
);
CREATE INDEX observations_by_time ON observations(start_ms, trace_id, id);
CREATE INDEX observations_by_level ON observations(level, start_ms);
CREATE INDEX observations_by_experiment ON observations(experiment_id, start_ms) WHERE experiment_id <> '';
CREATE TABLE scores (
    id TEXT PRIMARY KEY,
    trace_id TEXT,
    observation_id TEXT,
    session_id TEXT,
    experiment_id TEXT,
    name TEXT NOT NULL,
    data_type TEXT NOT NULL,
    number REAL,
    text TEXT,
    comment TEXT,
    metadata TEXT,
    environment TEXT NOT NULL,
    source TEXT NOT NULL,
    config_id TEXT,
    queue_id TEXT,
    author_user_id TEXT,
    timestamp INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX scores_by_time ON scores(timestamp, id);
CREATE INDEX scores_by_trace ON scores(trace_id, observation_id);
CREATE INDEX scores_by_experiment ON scores(experiment_id);
"""

# What came after the first files were written: created in every file that lacks it. An older Twogate does not
# look at these tables, so the format's number stays.
_ADDED = """
-- The dataset file last brought into the store, by dataset.
CREATE TABLE IF NOT EXISTS shipped_files (
    dataset TEXT PRIMARY KEY,
    digest TEXT NOT NULL
) WITHOUT ROWID;
-- What each of its items was when it was written from a file: another content now is the user's.
CREATE TABLE IF NOT EXISTS shipped_items (
    dataset TEXT NOT NULL,
    item_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (dataset, item_id)
) WITHOUT ROWID;
"""

Row = sqlite3.Row


class Database:
    """A connection to the store's file, made on first use of the constructor and closed by `close`."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises TwogateError when it cannot be used."""
        self.path = path
        self._lock = threading.RLock()
        self._open = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise TwogateError(f"cannot open the store {path}: {error}; {_ANOTHER_FILE}") from None
        self._connection.row_factory = sqlite3.Row
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise TwogateError(f"cannot use {path} as a store: {error}; {_ANOTHER_FILE}") from None
        except TwogateError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the connection; everything committed stays."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def write(self) -> Iterator[Database]:
        """One transaction that holds the write lock: committed at the end, rolled back on an exception.

        Inside another one it is a part of that.
        """
        with self._transaction("BEGIN IMMEDIATE"):
            yield self

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Database]:
        """Several reads of one state of the store."""
        with self._transaction("BEGIN"):
            yield self

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock:
            if self._open:
                yield
                return
            self._connection.execute(begin)
            self._open = True
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                self._open = False
                # After an error, also one of COMMIT itself (a full disk); SQLite may have rolled back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement; the row id of what it inserted."""
        with self._lock:
            return self._connection.execute(sql, parameters).lastrowid or 0

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for every row."""
        with self._lock:
            self._connection.executemany(sql, rows)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        with self._lock:
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row of a query."""
        with self._lock:
            found: Row | None = self._connection.execute(sql, parameters).fetchone()
            return found

    def count(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """The one number of a ``SELECT count(*)``."""
        found = self.row(sql, parameters)
        assert found is not None
        return int(found[0])

    def _prepare(self) -> None:
        # Taking a new file to WAL does not wait for other processes doing the same: try again.
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        with self.write():
            version = self.count("PRAGMA user_version")
            if version > SCHEMA_VERSION:
                raise TwogateError(
                    f"the store {self.path} was written by a newer Twogate (format {version}, this one reads "
                    f"{SCHEMA_VERSION}); update Twogate, or {_ANOTHER_FILE}"
                )
            if version == 0:
                if self.count("SELECT count(*) FROM sqlite_master"):
                    raise TwogateError(f"{self.path} is an SQLite file of something else; {_ANOTHER_FILE}")
                self._create(_SCHEMA)
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._create(_ADDED)

    def _create(self, schema: str) -> None:
        # Not executescript, which would end the transaction.
        for statement in schema.split(";"):
            if statement.strip():
                self._connection.execute(statement)
