"""Scores in the database."""

from __future__ import annotations

from collections.abc import Sequence

from evals.embedded.langfuse import jsonvalues
from evals.embedded.langfuse.database import Database, Row
from evals.embedded.langfuse.filters import Conditions, marks
from evals.embedded.langfuse.scores import Score
from evals.embedded.langfuse.settings import StoreSettings

# What a score leaves out stays as it was when it is sent again under the same id.
_UPSERT = """
INSERT INTO scores (id, trace_id, observation_id, session_id, experiment_id, name, data_type, number, text,
    comment, metadata, environment, source, config_id, queue_id, timestamp, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, 'default'), ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    trace_id = excluded.trace_id, observation_id = excluded.observation_id, session_id = excluded.session_id,
    experiment_id = excluded.experiment_id, name = excluded.name, data_type = excluded.data_type,
    number = excluded.number, text = excluded.text, comment = coalesce(excluded.comment, comment),
    metadata = coalesce(excluded.metadata, metadata), environment = coalesce(?, environment),
    source = excluded.source, config_id = coalesce(excluded.config_id, config_id),
    queue_id = coalesce(excluded.queue_id, queue_id), timestamp = excluded.timestamp,
    updated_at = excluded.updated_at
"""


class ScoreStore:
    """Reads and writes scores."""

    def __init__(self, database: Database, settings: StoreSettings) -> None:
        self._database = database
        self._settings = settings

    def add(self, scores: Sequence[Score]) -> list[str]:
        """Write scores in one transaction; one of a known id changes it. Returns their ids."""
        now = self._settings.now()
        ids = [score.id or self._settings.new_id("score") for score in scores]
        rows = [
            (
                score_id,
                score.trace_id,
                score.observation_id,
                score.session_id,
                score.experiment_id,
                score.name,
                score.data_type,
                None if score.is_text else score.value,
                score.value if score.is_text else None,
                score.comment,
                None if score.metadata is None else jsonvalues.dumps(score.metadata),
                score.environment,
                score.source,
                score.config_id,
                score.queue_id,
                now if score.timestamp is None else score.timestamp,
                # Langfuse keeps the creation time in whole seconds.
                now // 1000 * 1000,
                now,
                score.environment,
            )
            for score_id, score in zip(ids, scores, strict=True)
        ]
        with self._database.write() as database:
            database.execute_many(_UPSERT, rows)
        return ids

    def delete(self, score_id: str) -> None:
        """Delete a score, if there is one of that id."""
        with self._database.write() as database:
            database.execute("DELETE FROM scores WHERE id = ?", (score_id,))

    def page(self, conditions: Conditions, limit: int, after: tuple[int, str] | None = None) -> tuple[list[Row], bool]:
        """A page of scores, newest first, and whether more follow. `after`: timestamp (ms) and id."""
        where = conditions.where()
        parameters = list(conditions.parameters)
        if after is not None:
            where += " AND (timestamp, id) < (?, ?)"
            parameters += after
        rows = self._database.rows(
            f"SELECT * FROM scores WHERE {where} ORDER BY timestamp DESC, id DESC LIMIT ?",  # noqa: S608
            [*parameters, limit + 1],
        )
        return rows[:limit], len(rows) > limit

    def of_traces(self, trace_ids: Sequence[str]) -> list[Row]:
        """All scores of these traces and their observations, newest first."""
        return self._all("trace_id", trace_ids)

    def of_experiments(self, experiment_ids: Sequence[str]) -> list[Row]:
        """All run-level scores of these experiments, newest first."""
        return self._all("experiment_id", experiment_ids)

    def _all(self, column: str, ids: Sequence[str]) -> list[Row]:
        return self._database.rows(
            f"SELECT * FROM scores WHERE {column} IN ({marks(ids)}) ORDER BY timestamp DESC, id DESC",  # noqa: S608
            ids,
        )
