"""``GET /v2/observations`` and where observations are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evals.embedded.langfuse import cursors, errors, filters, jsonvalues, otlp, times, validation
from evals.embedded.langfuse.database import Database, Row
from evals.embedded.langfuse.errors import JsonResponse
from evals.embedded.langfuse.filters import Column, Conditions
from evals.embedded.langfuse.observe import LEVELS, OBSERVATION_TYPES, Observation, observation
from evals.embedded.langfuse.requests import Endpoint, authenticate, read_body
from evals.embedded.langfuse.settings import StoreSettings
from evals.embedded.langfuse.validation import QueryReader

METADATA_CUT = 200
_MAX_INGESTION_VERSION = 4
_CURSOR = ("lastStartTimeTo", "lastTraceId", "lastId")

_COLUMNS = tuple(each.name for each in dataclasses.fields(Observation))
_IO = ("input", "output", "expected_output")
_INSERT = f"INSERT OR REPLACE INTO observations ({', '.join(_COLUMNS)}) VALUES ({filters.marks(_COLUMNS)})"  # noqa: S608

_LATENCY = "((end_ms - start_ms) / 1000.0)"
FILTER_COLUMNS = {
    "id": Column("id"),
    "type": Column("type"),
    "name": Column("name"),
    "traceId": Column("trace_id"),
    "parentObservationId": Column("parent_id"),
    "startTime": Column("start_ms"),
    "endTime": Column("end_ms"),
    "environment": Column("environment"),
    "level": Column("level"),
    "statusMessage": Column("status_message"),
    "version": Column("version"),
    "release": Column("release"),
    "userId": Column("user_id"),
    "sessionId": Column("session_id"),
    "isRootObservation": Column("is_root"),
    "traceName": Column("trace_name"),
    "traceTags": Column("tags"),
    "tags": Column("tags"),
    "latency": Column(_LATENCY),
    "timeToFirstToken": Column("((completion_start_ms - start_ms) / 1000.0)"),
    "tokensPerSecond": Column(f"(output_usage / nullif({_LATENCY}, 0))"),
    "inputTokens": Column("input_usage"),
    "outputTokens": Column("output_usage"),
    "totalTokens": Column("total_usage"),
    "tokens": Column("total_usage"),
    "inputCost": Column("input_cost"),
    "outputCost": Column("output_cost"),
    "totalCost": Column("total_cost"),
    "model": Column("model"),
    "providedModelName": Column("model"),
    "promptName": Column("prompt_name"),
    "promptVersion": Column("prompt_version"),
    "input": Column("input"),
    "output": Column("output"),
    "metadata": Column("metadata"),
    "experimentId": Column("experiment_id"),
    "experimentName": Column("experiment_name"),
    "experimentItemId": Column("experiment_item_id"),
    "experimentDatasetId": Column("experiment_dataset_id"),
}


@dataclass(frozen=True)
class ObservationQuery:
    """Which observations to list, newest first; `after` is where the last page ended (ms, trace, id).

    Inputs and outputs, which may be large, are read `with_io` only.
    """

    conditions: Conditions = field(default_factory=Conditions)
    limit: int = 50
    after: tuple[int, str, str] | None = None
    with_io: bool = False


class ObservationStore:
    """Observations in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, observations: Sequence[Observation]) -> None:
        """Write observations; one of a known trace and id replaces it."""
        rows = [tuple(getattr(each, name) for name in _COLUMNS) for each in observations]
        with self._database.write() as database:
            database.execute_many(_INSERT, rows)

    def page(self, query: ObservationQuery) -> tuple[list[Row], bool]:
        """A page of rows, and whether more follow."""
        columns = [name for name in _COLUMNS if query.with_io or name not in _IO]
        where = query.conditions.where()
        parameters = list(query.conditions.parameters)
        if query.after is not None:
            where += " AND (start_ms, trace_id, id) < (?, ?, ?)"
            parameters += query.after
        rows = self._database.rows(
            f"SELECT {', '.join(columns)} FROM observations WHERE {where}"  # noqa: S608
            " ORDER BY start_ms DESC, trace_id DESC, id DESC LIMIT ?",
            [*parameters, query.limit + 1],
        )
        return rows[: query.limit], len(rows) > query.limit


class ObservationRoutes:
    """``/otel/v1/traces`` and ``/v2/observations``."""

    def __init__(self, store: ObservationStore, settings: StoreSettings) -> None:
        self._store = store
        self._settings = settings

    def routes(self) -> list[Route]:
        """The routes, to be put into the application."""
        return [
            Route("/api/public/otel/v1/traces", Endpoint(self._settings, {"POST": self.export})),
            Route("/api/public/v2/observations", Endpoint(self._settings, {"GET": self.list_observations})),
        ]

    async def export(self, request: Request) -> Response:
        """POST: an OTLP trace export."""
        authenticate(request, self._settings)
        version = request.headers.get("x-langfuse-ingestion-version")
        if version is not None and _version_number(version) > _MAX_INGESTION_VERSION:
            raise otlp.refused(
                f'Unsupported x-langfuse-ingestion-version: "{version}". Maximum supported: "{_MAX_INGESTION_VERSION}".'
            )
        body = await read_body(request, otlp.EXPORT_LIMIT)
        body = otlp.decompressed(body, request.headers.get("content-encoding", ""))
        spans = otlp.decode(body, request.headers.get("content-type", ""))
        if not spans:
            return JsonResponse({})
        now = self._settings.now()
        self._store.add([observation(span, now) for span in spans])
        return JsonResponse(self._job(request, version, now))

    def _job(self, request: Request, version: str | None, now: int) -> dict[str, Any]:
        """What Langfuse answers to an export: a description of the job it queued."""
        return {
            "name": "otel-ingestion-job",
            "data": {
                "id": self._settings.new_id("job"),
                "timestamp": times.iso(now),
                "name": "otel-ingestion-job",
                "payload": {
                    "data": {"publicKey": self._settings.public_key},
                    "authCheck": {
                        "validKey": True,
                        "scope": {
                            "projectId": self._settings.project.id,
                            "accessLevel": "project",
                            "orgId": self._settings.project.organization_id,
                        },
                    },
                    "sdkName": request.headers.get("x-langfuse-sdk-name", "unknown"),
                    "sdkVersion": request.headers.get("x-langfuse-sdk-version", "unknown"),
                    **({} if version is None else {"ingestionVersion": version}),
                },
            },
        }

    async def list_observations(self, request: Request) -> Response:
        """GET: observations, newest first, read on with a cursor."""
        authenticate(request, self._settings)
        reader = QueryReader(request.query_params)
        groups = _groups(reader)
        query = _query(reader, with_io="io" in groups)
        expanded = set(reader.texts("expandMetadata"))
        rows, more = self._store.page(query)
        data = [_answer(row, groups, expanded, self._settings.project.id) for row in rows]
        meta = {}
        if more and rows:
            last = rows[-1]
            values = (times.iso(last["start_ms"]), last["trace_id"], last["id"])
            meta["cursor"] = cursors.encode(dict(zip(_CURSOR, values, strict=True)))
        return JsonResponse({"data": data, "meta": meta})


def _version_number(version: str) -> float:
    try:
        return float(version)
    except ValueError:
        raise otlp.refused(
            f'Unsupported x-langfuse-ingestion-version: "{version}". Maximum supported: "{_MAX_INGESTION_VERSION}".'
        ) from None


def _groups(reader: QueryReader) -> set[str]:
    named = reader.texts("fields")
    return set(named) if named else {"core", "basic"}


def _query(reader: QueryReader, *, with_io: bool) -> ObservationQuery:
    limit = reader.integer("limit", 50, minimum=0, maximum=1000)
    texts = {column: reader.text(column) for column in ("traceId", "name", "userId", "sessionId", "version")}
    texts["type"] = reader.option("type", OBSERVATION_TYPES)
    texts["level"] = reader.option("level", LEVELS)
    parent = reader.text("parentObservationId")
    root = reader.flag("isRootObservation")
    environments = reader.repeated("environment")
    start, end = reader.zoned("fromStartTime"), reader.zoned("toStartTime")
    if reader.flag("parseIoAsJson"):
        reader.issues.append(
            validation.custom(
                "parseIoAsJson=true is no longer supported on the v2 observations endpoint. Input/output "
                "fields are always returned as raw strings. Remove the parseIoAsJson parameter or set it to "
                "false.",
                ["parseIoAsJson"],
            )
        )
    cursor, raw_filter = reader.text("cursor"), reader.text("filter")
    reader.done()
    conditions = filters.parse(raw_filter, FILTER_COLUMNS)
    _check_io_filters(conditions)
    filtered = {condition["column"] for condition in conditions}
    found = Conditions()
    # A filter replaces the parameter of the same column and is combined with those of others.
    for column, value in texts.items():
        if value and column not in filtered:
            found.add(f"{FILTER_COLUMNS[column].sql} = ?", value)
    if parent is not None and "parentObservationId" not in filtered:
        found.add("parent_id = ?", parent)
    if root is not None and "isRootObservation" not in filtered:
        found.add("is_root = ?", int(root))
    if "environment" not in filtered:
        found.any_of("environment", environments)
    if "startTime" not in filtered:
        if start is not None:
            found.add("start_ms >= ?", start)
        if end is not None:
            found.add("start_ms < ?", end)
    filters.apply(conditions, FILTER_COLUMNS, found)
    return ObservationQuery(found, limit, _after(cursor), with_io)


def _check_io_filters(conditions: Sequence[dict[str, Any]]) -> None:
    of_io = [each for each in conditions if each["column"] in ("input", "output")]
    if of_io and not any(each["operator"] in ("=", "matches") for each in of_io):
        raise errors.invalid_request(
            "A filter on input or output needs at least one '=' or 'matches' condition on input or output"
        )


def _after(cursor: str | None) -> tuple[int, str, str] | None:
    if not cursor:
        return None
    moment, trace_id, observation_id = cursors.decode(cursor, _CURSOR)
    ms = times.parse_zoned(moment)
    if ms is None:
        raise errors.invalid_request("Invalid cursor format")
    return ms, trace_id, observation_id


def seconds(start_ms: int, end_ms: int | None) -> float | int | None:
    """How long something took, in seconds."""
    return None if end_ms is None else jsonvalues.number((end_ms - start_ms) / 1000)


def _amount(value: float | None) -> float | int | None:
    return None if value is None else jsonvalues.number(value)


def _answer(row: Row, groups: set[str], expanded: set[str], project_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "id": row["id"],
        "traceId": row["trace_id"],
        "startTime": times.iso(row["start_ms"]),
        "endTime": times.iso_or_none(row["end_ms"]),
        "projectId": project_id,
        "parentObservationId": row["parent_id"] or None,
        "type": row["type"],
        "latency": seconds(row["start_ms"], row["end_ms"]),
        "timeToFirstToken": seconds(row["start_ms"], row["completion_start_ms"]),
        # No prices are kept; the fields come with every answer all the same.
        "modelId": None,
        "inputPrice": None,
        "outputPrice": None,
        "totalPrice": None,
    }
    if "basic" in groups:
        answer |= {
            "name": row["name"],
            "level": row["level"],
            "statusMessage": row["status_message"],
            "version": row["version"],
            "environment": row["environment"],
            "userId": row["user_id"],
            "sessionId": row["session_id"],
            "isRootObservation": bool(row["is_root"]),
            "bookmarked": False,
            "public": bool(row["public"]),
        }
    if "time" in groups:
        answer |= {
            "completionStartTime": times.iso_or_none(row["completion_start_ms"]),
            "createdAt": times.iso(row["created_at"]),
            "updatedAt": times.iso(row["updated_at"]),
        }
    if "io" in groups:
        answer |= {"input": row["input"], "output": row["output"]}
    if "metadata" in groups:
        whole = "io" in groups
        answer["metadata"] = {
            key: jsonvalues.looks_parsed(value if whole or key in expanded else value[:METADATA_CUT])
            for key, value in jsonvalues.loads(row["metadata"]).items()
        }
    if "model" in groups:
        answer |= {
            "model": row["model"],
            "internalModelId": "",
            "modelParameters": jsonvalues.loads(row["model_parameters"]),
        }
    if "usage" in groups:
        answer |= {
            "usageDetails": jsonvalues.loads(row["usage_details"]),
            "inputUsage": _amount(row["input_usage"]),
            "outputUsage": _amount(row["output_usage"]),
            "totalUsage": _amount(row["total_usage"]),
            "costDetails": jsonvalues.loads(row["cost_details"]),
            "inputCost": _amount(row["input_cost"]),
            "outputCost": _amount(row["output_cost"]),
            "totalCost": _amount(row["total_cost"]),
            "usagePricingTierId": None,
            "usagePricingTierName": None,
        }
    if "prompt" in groups:
        answer |= {
            "promptId": "",
            "promptName": row["prompt_name"],
            "promptVersion": row["prompt_version"],
        }
    if "trace_context" in groups:
        answer |= {
            "traceName": row["trace_name"],
            "release": row["release"],
            "tags": jsonvalues.loads(row["tags"]),
        }
    return answer
