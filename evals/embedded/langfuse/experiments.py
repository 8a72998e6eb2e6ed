"""``/experiments``, ``/experiment-items`` and ``POST /dataset-run-items``.

An experiment is nothing but its observations: the spans that carry its id.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evals.embedded.langfuse import cursors, errors, filters, jsonvalues, scores, times, validation
from evals.embedded.langfuse.database import Database, Row
from evals.embedded.langfuse.dataset_store import DatasetStore
from evals.embedded.langfuse.errors import JsonResponse
from evals.embedded.langfuse.filters import Column, Columns, Conditions
from evals.embedded.langfuse.requests import Endpoint, authenticate, read_json
from evals.embedded.langfuse.score_store import ScoreStore
from evals.embedded.langfuse.settings import StoreSettings
from evals.embedded.langfuse.validation import BodyReader, QueryReader

_EXPERIMENT_GROUPS = ("core", "metadata", "scores")
_ITEM_GROUPS = ("core", "dataset", "io", "metadata", "itemMetadata", "experimentMetadata", "scores")
_CURSOR = ("lastTime", "lastTraceId", "lastId", "lastExperimentId")
_EXPERIMENT_COLUMNS: Columns = {
    "id": Column("experiment_id"),
    "name": Column("experiment_name"),
    "datasetId": Column("experiment_dataset_id"),
}
_ITEM_COLUMNS: Columns = {
    "experimentId": Column("experiment_id"),
    "experimentName": Column("experiment_name"),
    "experimentItemId": Column("experiment_item_id"),
    "datasetId": Column("experiment_dataset_id"),
}

# Name, description, metadata and dataset are those of the span that started last.
_EXPERIMENTS = """
WITH spans AS (SELECT trace_id, id, start_ms, end_ms, experiment_id, experiment_name, experiment_description,
    experiment_metadata, experiment_dataset_id, experiment_item_root_id
    FROM observations WHERE experiment_id <> '' AND {where}),
ranked AS (SELECT *, row_number() OVER (
    PARTITION BY experiment_id ORDER BY start_ms DESC, trace_id DESC, id DESC) AS rank FROM spans),
totals AS (SELECT experiment_id, min(start_ms) AS first_ms, max(end_ms) AS last_ms,
    count(DISTINCT trace_id || ' ' || experiment_item_root_id) AS trials FROM spans GROUP BY experiment_id)
SELECT ranked.*, totals.first_ms, totals.last_ms, totals.trials
FROM ranked JOIN totals USING (experiment_id) WHERE rank = 1 {after}
ORDER BY start_ms DESC, trace_id DESC, id DESC LIMIT ?
"""

Cursor = tuple[int, str, str]


def experiment_id(project_id: str, dataset_id: str, run_name: str) -> str:
    """The id of an experiment on a dataset: 16 hex digits, as the Langfuse SDK and server derive it."""
    text = jsonvalues.dumps(["langfuse-experiment-v1", project_id, dataset_id, run_name])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class ExperimentStore:
    """Experiments and their trials, read from the observations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def experiments(self, conditions: Conditions, limit: int, after: Cursor | None = None) -> tuple[list[Row], bool]:
        """Experiments, the last active first, and whether more follow."""
        rows = self._database.rows(
            _EXPERIMENTS.format(
                where=conditions.where(), after="" if after is None else "AND (start_ms, trace_id, id) < (?, ?, ?)"
            ),
            [*conditions.parameters, *(after or ()), limit + 1],
        )
        return rows[:limit], len(rows) > limit

    def trials(self, conditions: Conditions, limit: int, after: Cursor | None = None) -> tuple[list[Row], bool]:
        """The task spans of trials, newest first, and whether more follow."""
        where = f"experiment_id <> '' AND id = experiment_item_root_id AND {conditions.where()}"
        parameters = list(conditions.parameters)
        if after is not None:
            where += " AND (start_ms, trace_id, id) < (?, ?, ?)"
            parameters += after
        rows = self._database.rows(
            f"SELECT * FROM observations WHERE {where}"  # noqa: S608
            " ORDER BY start_ms DESC, trace_id DESC, id DESC LIMIT ?",
            [*parameters, limit + 1],
        )
        return rows[:limit], len(rows) > limit


class ExperimentRoutes:
    """The endpoints of experiments."""

    def __init__(
        self, store: ExperimentStore, score_store: ScoreStore, datasets: DatasetStore, settings: StoreSettings
    ) -> None:
        self._store = store
        self._scores = score_store
        self._datasets = datasets
        self._settings = settings

    def routes(self) -> list[Route]:
        """The routes, to be put into the application."""
        return [
            Route(path, Endpoint(self._settings, methods))
            for path, methods in (
                ("/api/public/experiments", {"GET": self.list_experiments}),
                ("/api/public/experiment-items", {"GET": self.list_items}),
                ("/api/public/dataset-run-items", {"GET": self.no_longer, "POST": self.create_run_item}),
            )
        ]

    async def no_longer(self, _request: Request) -> Response:
        """GET dataset-run-items: gone."""
        raise errors.unavailable()

    async def list_experiments(self, request: Request) -> Response:
        """GET: experiments, the last active first, read on with a cursor."""
        authenticate(request, self._settings)
        reader = QueryReader(request.query_params)
        named = {"id": "id", "name": "name", "datasetId": "datasetId"}
        groups, limit, score_limit, conditions, after = _read(reader, _EXPERIMENT_GROUPS, named, _EXPERIMENT_COLUMNS)
        rows, more = self._store.experiments(conditions, limit, after)
        by_experiment: dict[str, list[Row]] = defaultdict(list)
        if "scores" in groups:
            for score in self._scores.of_experiments([row["experiment_id"] for row in rows]):
                by_experiment[score["experiment_id"]].append(score)
        data = []
        for row in rows:
            answer = _experiment(row)
            if "metadata" in groups:
                answer["metadata"] = jsonvalues.loads(row["experiment_metadata"])
            if "scores" in groups:
                answer["scores"] = self._score_answers(by_experiment[row["experiment_id"]][:score_limit])
            data.append(answer)
        return JsonResponse({"data": data, "meta": _meta(rows, more)})

    async def list_items(self, request: Request) -> Response:
        """GET: trials of experiments, newest first, read on with a cursor."""
        authenticate(request, self._settings)
        reader = QueryReader(request.query_params)
        named = {
            "experimentId": "experimentId",
            "experimentName": "experimentName",
            "experimentItemId": "experimentItemId",
            "datasetId": "datasetId",
        }
        groups, limit, score_limit, conditions, after = _read(reader, _ITEM_GROUPS, named, _ITEM_COLUMNS)
        rows, more = self._store.trials(conditions, limit, after)
        by_trace: dict[str, list[Row]] = defaultdict(list)
        if "scores" in groups:
            for score in self._scores.of_traces([row["trace_id"] for row in rows]):
                by_trace[score["trace_id"]].append(score)
        data = []
        for row in rows:
            answer = _trial(row, groups)
            if "scores" in groups:
                own = [score for score in by_trace[row["trace_id"]] if score["observation_id"] in (None, row["id"])]
                answer["scores"] = self._score_answers(own[:score_limit])
            data.append(answer)
        return JsonResponse({"data": data, "meta": _meta(rows, more)})

    async def create_run_item(self, request: Request) -> Response:
        """POST: the older way to put a trace into an experiment; it answers the experiment's id.

        Like Langfuse 4 it links nothing: experiments are read from the spans.
        """
        body = await read_json(request)
        authenticate(request, self._settings)
        reader = BodyReader(validation.expect_object(body))
        run_name = reader.text("runName", required=True)
        item_id = reader.text("datasetItemId", required=True)
        trace_id, observation_id = reader.text("traceId"), reader.text("observationId")
        reader.done()
        item = self._datasets.item(item_id or "")
        if item is None:
            raise errors.not_found("Dataset item not found")
        if not trace_id:
            raise errors.invalid_request("No traceId set")
        now = times.iso(self._settings.now())
        return JsonResponse(
            {
                "id": self._settings.new_id("run-item"),
                "datasetRunId": experiment_id(self._settings.project.id, item.dataset_id, run_name or ""),
                "datasetRunName": run_name,
                "datasetItemId": item_id,
                "traceId": trace_id,
                "observationId": observation_id,
                "createdAt": now,
                "updatedAt": now,
            }
        )

    def _score_answers(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        project = self._settings.project.id
        return [{**scores.core(row, project), **scores.subject(row)} for row in rows]


def _read(
    reader: QueryReader, known: Sequence[str], named: dict[str, str], columns: Columns
) -> tuple[set[str], int, int, Conditions, Cursor | None]:
    """The parameters both lists have: groups, limit, score limit, conditions, where to go on."""
    start = reader.zoned("fromStartTime", required=True)
    end = reader.zoned("toStartTime")
    limit = reader.integer("limit", 50, minimum=1, maximum=100)
    score_limit = reader.integer("scoreLimit", 50, minimum=1, maximum=50)
    groups = reader.groups(known)
    lists = {column: reader.texts(parameter) for parameter, column in named.items()}
    cursor, raw_filter = reader.text("cursor"), reader.text("filter")
    reader.done()
    conditions = filters.parse(raw_filter, columns)
    filtered = {condition["column"] for condition in conditions}
    found = Conditions()
    found.add("start_ms >= ?", start)
    if end is not None:
        found.add("start_ms < ?", end)
    for column, values in lists.items():
        if column not in filtered:
            found.any_of(columns[column].sql, values)
    filters.apply(conditions, columns, found)
    chosen = {"core", "dataset"} if groups is None else set(groups)
    return chosen, limit, score_limit, found, _after(cursor)


def _after(cursor: str | None) -> Cursor | None:
    if not cursor:
        return None
    moment, trace_id, span_id, _ = cursors.decode(cursor, _CURSOR)
    ms = times.parse_lenient(moment)
    if ms is None:
        raise errors.invalid_request("Invalid cursor format")
    return ms, trace_id, span_id


def _meta(rows: Sequence[Row], more: bool) -> dict[str, Any]:
    if not more:
        return {}
    last = rows[-1]
    values = (times.clickhouse(last["start_ms"]), last["trace_id"], last["id"], last["experiment_id"])
    return {"cursor": cursors.encode({"v": 1, **dict(zip(_CURSOR, values, strict=True))})}


def _experiment(row: Row) -> dict[str, Any]:
    return {
        "id": row["experiment_id"],
        "name": row["experiment_name"],
        "description": row["experiment_description"],
        "startTime": times.iso(row["first_ms"]),
        "endTime": times.iso_or_none(row["last_ms"]),
        "itemCount": row["trials"],
        "datasetId": row["experiment_dataset_id"] or None,
    }


def _trial(row: Row, groups: set[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "id": row["id"],
        "traceId": row["trace_id"],
        "startTime": times.iso(row["start_ms"]),
        "endTime": times.iso_or_none(row["end_ms"]),
        "level": row["level"],
        "environment": row["environment"],
        "experimentId": row["experiment_id"],
        "experimentName": row["experiment_name"],
        "experimentItemId": row["experiment_item_id"],
    }
    if "dataset" in groups:
        answer |= {
            "experimentDatasetId": row["experiment_dataset_id"] or None,
            "experimentItemVersion": row["experiment_item_version"] or None,
        }
    if "io" in groups:
        answer |= {
            "input": row["input"],
            "output": row["output"],
            "expectedOutput": row["expected_output"],
        }
    if "metadata" in groups:
        answer["metadata"] = jsonvalues.loads(row["metadata"])
    if "itemMetadata" in groups:
        answer["experimentItemMetadata"] = jsonvalues.loads(row["experiment_item_metadata"])
    if "experimentMetadata" in groups:
        answer |= {
            "experimentMetadata": jsonvalues.loads(row["experiment_metadata"]),
            "experimentDescription": row["experiment_description"],
        }
    return answer
