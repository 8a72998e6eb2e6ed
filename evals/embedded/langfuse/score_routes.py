"""``/scores``, ``/v3/scores`` and ``/ingestion``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evals.embedded.langfuse import cursors, errors, jsonvalues, scores, times, validation
from evals.embedded.langfuse.database import Row
from evals.embedded.langfuse.errors import Issue, JsonResponse
from evals.embedded.langfuse.filters import Conditions
from evals.embedded.langfuse.requests import Endpoint, authenticate, credentials_problem, read_json, segment
from evals.embedded.langfuse.score_store import ScoreStore
from evals.embedded.langfuse.scores import DATA_TYPES, Score, parse_score
from evals.embedded.langfuse.settings import StoreSettings
from evals.embedded.langfuse.validation import QueryReader

_GROUPS = ("core", "details", "subject", "annotation")
_CURSOR = ("lastTimestamp", "lastId")
_LISTS = {
    "id": "id",
    "name": "name",
    "environment": "environment",
    "configId": "config_id",
    "queueId": "queue_id",
    "authorUserId": "author_user_id",
    "traceId": "trace_id",
    "sessionId": "session_id",
    "observationId": "observation_id",
    "experimentId": "experiment_id",
}
_PARAMETERS = (
    *_LISTS,
    "limit",
    "cursor",
    "fields",
    "source",
    "dataType",
    "userId",
    "value",
    "valueMin",
    "valueMax",
    "fromTimestamp",
    "toTimestamp",
)
_INGESTED = ("score-create", "sdk-log")


class ScoreRoutes:
    """The endpoints of scores."""

    def __init__(self, store: ScoreStore, settings: StoreSettings) -> None:
        self._store = store
        self._settings = settings

    def routes(self) -> list[Route]:
        """The routes, to be put into the application."""
        return [
            Route(path, Endpoint(self._settings, methods))
            for path, methods in (
                ("/api/public/scores", {"GET": self.no_longer, "POST": self.create}),
                ("/api/public/scores/{id}", {"GET": self.no_longer, "DELETE": self.delete}),
                ("/api/public/v3/scores", {"GET": self.list_scores}),
                ("/api/public/ingestion", {"POST": self.ingest}),
            )
        ]

    async def no_longer(self, _request: Request) -> Response:
        """GET (v1): gone."""
        raise errors.unavailable()

    async def create(self, request: Request) -> Response:
        """POST: one score (200 and its id), or an array of them (202, or 207 when some are refused)."""
        body = await read_json(request)
        authenticate(request, self._settings)
        if isinstance(body, list):
            return self._create_all(body)
        score, issues = parse_score(validation.expect_object(body))
        if score is None:
            raise errors.invalid(issues)
        return JsonResponse({"id": self._store.add([score])[0]})

    def _create_all(self, bodies: list[Any]) -> Response:
        if self._settings.refuse_score_arrays:
            issue = validation.wrong_type("object", bodies, [])
            raise errors.invalid([issue, issue])
        accepted: list[Score] = []
        refused: list[dict[str, str]] = []
        for position, body in enumerate(bodies):
            score, issues = (
                parse_score(body, [position])
                if isinstance(body, dict)
                else (None, [validation.wrong_type("object", body, [position])])
            )
            if score is None:
                refused.append({"message": _summary(position, issues)})
            else:
                accepted.append(score)
        self._store.add(accepted)
        if not refused:
            return JsonResponse({"message": "Accepted"}, 202)
        return JsonResponse({"accepted": len(accepted), "rejected": len(refused), "errors": refused}, 207)

    async def delete(self, request: Request) -> Response:
        """DELETE one score: 204, also when there is none (this answer follows the SDK; it was not recorded)."""
        authenticate(request, self._settings)
        self._store.delete(segment(request, "id"))
        return Response(status_code=204)

    async def ingest(self, request: Request) -> Response:
        """POST: a batch of events, of which scores and SDK logs are taken; the answer is 207 by event."""
        body = await read_json(request)
        problem = credentials_problem(request, self._settings)
        if problem:
            raise errors.ApiError(JsonResponse({"error": "UnauthorizedError", "message": problem}, 401))
        batch = _batch(body)
        successes: list[dict[str, Any]] = []
        failures: list[dict[str, Any]] = []
        found: list[Score] = []
        for event in batch:
            event_id = event.get("id") if isinstance(event, dict) else None
            score, failure = _event(event)
            if failure is not None:
                failures.append({"id": event_id, "status": 400, **failure})
            else:
                successes.append({"id": event_id, "status": 201})
                if score is not None:
                    found.append(score)
        self._store.add(found)
        return JsonResponse({"successes": successes, "errors": failures}, 207)

    async def list_scores(self, request: Request) -> Response:
        """GET (v3): scores, newest first, read on with a cursor."""
        authenticate(request, self._settings)
        reader = QueryReader(request.query_params)
        limit = reader.integer("limit", 50, minimum=1, maximum=100)
        groups = reader.groups(_GROUPS) or []
        conditions = _conditions(reader)
        cursor = reader.text("cursor")
        reader.only(_PARAMETERS)
        reader.done()
        rows, more = self._store.page(conditions, limit, _after(cursor))
        meta: dict[str, Any] = {"limit": limit}
        if more:
            last = rows[-1]
            meta["cursor"] = cursors.encode(
                {"v": 1, "lastTimestamp": times.iso(last["timestamp"]), "lastId": last["id"]}
            )
        return JsonResponse({"data": [self._answer(row, groups) for row in rows], "meta": meta})

    def _answer(self, row: Row, groups: Sequence[str]) -> dict[str, Any]:
        answer = scores.core(row, self._settings.project.id)
        for group, add in (
            ("details", scores.details),
            ("annotation", scores.annotation),
            ("subject", scores.subject),
        ):
            if group in groups:
                answer |= add(row)
        return answer


def _summary(position: int, issues: Sequence[Issue]) -> str:
    listed = "; ".join(
        f"{'.'.join(str(part) for part in issue['path'][1:]) or 'score'}: {issue['message']}" for issue in issues
    )
    return f"Score at index {position} is invalid: {listed}"


def _batch(body: Any) -> list[Any]:
    if not isinstance(body, dict):
        found, expected = body, "object"
    else:
        found, expected = body.get("batch", validation.MISSING), "array"
        if isinstance(found, list):
            return found
    message = validation.wrong_type(expected, found, [])["message"]
    raise errors.ApiError(JsonResponse({"message": "Invalid request data", "errors": [message]}, 400))


def _event(event: Any) -> tuple[Score | None, dict[str, str] | None]:
    """The score of an event (None for a log), or why the event is refused."""
    if not isinstance(event, dict):
        return None, _malformed([validation.wrong_type("object", event, [])])
    kind = event.get("type")
    if kind not in _INGESTED:
        return None, {
            "message": "Event type not accepted",
            "error": f'Event type "{kind}" is not accepted by /api/public/ingestion when '
            "LANGFUSE_MIGRATION_V4_WRITE_MODE is events_only. This endpoint only accepts score and log events. "
            "Upgrade the client or integration to a v4-compatible SDK or OTLP ingestion path. As a temporary "
            "migration bridge, set LANGFUSE_MIGRATION_V4_WRITE_MODE=dual on both the web and worker services "
            "and redeploy. Docs: https://langfuse.com/self-hosting/upgrade/upgrade-guides/upgrade-v3-to-v4",
        }
    issues: list[Issue] = []
    if not isinstance(event.get("id"), str):
        issues.append(validation.wrong_type("string", event.get("id", validation.MISSING), ["id"]))
    stamp = event.get("timestamp", validation.MISSING)
    sent_at = None
    if isinstance(stamp, str):
        sent_at = times.parse_zoned(stamp)
        if sent_at is None:
            issues.append(validation.invalid_datetime(["timestamp"]))
    else:
        issues.append(validation.wrong_type("string", stamp, ["timestamp"]))
    score = None
    if kind == "score-create":
        body = event.get("body", validation.MISSING)
        if isinstance(body, dict):
            score, found = parse_score(body, ["body"], sent_at=sent_at)
            issues += found
        else:
            issues.append(validation.wrong_type("object", body, ["body"]))
    return (None, _malformed(issues)) if issues else (score, None)


def _malformed(issues: Sequence[Issue]) -> dict[str, str]:
    return {"message": "Invalid request data", "error": jsonvalues.pretty(list(issues))}


def _after(cursor: str | None) -> tuple[int, str] | None:
    if not cursor:
        return None
    moment, score_id = cursors.decode(cursor, _CURSOR)
    ms = times.parse_zoned(moment)
    if ms is None:
        raise errors.invalid_request("Invalid cursor format")
    return ms, score_id


def _rule(reader: QueryReader, message: str) -> None:
    reader.issues.append({"code": "custom", "message": message, "path": []})


def _conditions(reader: QueryReader) -> Conditions:
    found = Conditions()
    lists = {name: reader.texts(name) for name in _LISTS}
    for name, column in _LISTS.items():
        found.any_of(column, lists[name])
    subjects = [name for name in ("traceId", "sessionId", "experimentId") if lists[name]]
    if len(subjects) > 1:
        _rule(reader, "At most one of traceId, sessionId, experimentId may be specified")
    elif lists["observationId"] and not lists["traceId"]:
        _rule(reader, "observationId filter requires traceId — observation IDs are scoped to a trace")
    if reader.query.get("userId") is not None:
        _rule(
            reader,
            "userId filter requires a trace JOIN and is not supported in v3 — use v2 or omit this filter",
        )
    found.any_of("source", [source.upper() for source in reader.texts("source")])
    data_types = [data_type.upper() for data_type in reader.texts("dataType")]
    reader.issues += [
        validation.wrong_option(DATA_TYPES, ["dataType", position])
        for position, data_type in enumerate(data_types)
        if data_type not in DATA_TYPES
    ]
    found.any_of("data_type", data_types)
    _value_conditions(reader, data_types, found)
    start, end = reader.lenient("fromTimestamp"), reader.lenient("toTimestamp")
    if start is not None:
        found.add("timestamp >= ?", start)
    if end is not None:
        found.add("timestamp < ?", end)
    return found


def _value_conditions(reader: QueryReader, data_types: list[str], found: Conditions) -> None:
    values = reader.texts("value")
    low, high = reader.decimal("valueMin"), reader.decimal("valueMax")
    if (low is not None or high is not None) and data_types != ["NUMERIC"]:
        _rule(reader, "valueMin and valueMax require dataType=NUMERIC as a single value")
    if low is not None:
        found.add("number >= ?", low)
    if high is not None:
        found.add("number <= ?", high)
    if not values:
        return
    if data_types == ["CATEGORICAL"]:
        found.any_of("text", values)
    elif data_types == ["BOOLEAN"] and set(values) <= {"true", "false"}:
        found.any_of("number", [float(value == "true") for value in values])
    elif data_types == ["NUMERIC"] and (numbers := _numbers(values)) is not None:
        found.any_of("number", numbers)
    else:
        _rule(
            reader,
            "value requires a single dataType of NUMERIC (numbers), BOOLEAN (true or false) or CATEGORICAL",
        )


def _numbers(values: Sequence[str]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None
