"""What scores are: their shape, the checks of a score that is sent, and how they read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.embedded.langfuse import jsonvalues, times, validation
from evals.embedded.langfuse.database import Row
from evals.embedded.langfuse.errors import Issue
from evals.embedded.langfuse.validation import MISSING, BodyReader

DATA_TYPES = ("NUMERIC", "CATEGORICAL", "BOOLEAN", "TEXT", "CORRECTION")
_MAX_TEXT = 500
_ENVIRONMENT = re.compile(r"(?!langfuse)[a-z0-9_-]{1,40}")
_TARGET = (
    "Provide exactly one of the following: traceId (with optional observationId), sessionId or datasetRunId. "
    "ObservationId requires traceId."
)


@dataclass(frozen=True)
class Score:
    """A score as it is sent. Times in milliseconds; None: not given.

    It belongs to a trace, an observation of a trace, a session or an experiment.
    """

    id: str | None
    name: str
    data_type: str
    value: float | str
    trace_id: str | None
    observation_id: str | None
    session_id: str | None
    experiment_id: str | None
    comment: str | None
    metadata: Any
    environment: str | None
    config_id: str | None
    queue_id: str | None
    source: str
    timestamp: int | None

    @property
    def is_text(self) -> bool:
        """Whether the value is a text (and not a number)."""
        return isinstance(self.value, str)


def parse_score(
    body: Mapping[str, Any], prefix: Sequence[str | int] = (), *, sent_at: int | None = None
) -> tuple[Score | None, list[Issue]]:
    """The score that a body describes, or what is wrong with it.

    `prefix` is where the body is, for the issues; `sent_at` (milliseconds) stands in for a missing timestamp.
    """
    reader = BodyReader(body, prefix)
    texts = {
        field: reader.text(field)
        for field in ("id", "traceId", "sessionId", "observationId", "datasetRunId", "comment")
    }
    name = reader.text("name", required=True)
    data_type = reader.option("dataType", DATA_TYPES)
    value = _value(reader, data_type)
    environment = reader.text("environment")
    if environment is not None and not _ENVIRONMENT.fullmatch(environment):
        reader.issues.append(
            validation.custom(
                "Environment must be 1 to 40 lower case letters, digits, hyphens or underscores and must not "
                "start with langfuse",
                reader.path("environment"),
            )
        )
    config_id, queue_id = reader.text("configId"), reader.text("queueId")
    source = reader.option("source", ["API", "ANNOTATION"])
    timestamp = _timestamp(reader)
    if not reader.issues and not _one_target(texts):
        reader.issues.append(
            validation.custom(
                _TARGET,
                [*prefix, "traceId", "sessionId", "datasetRunId", "observationId"],
            )
        )
    if reader.issues or name is None or value is None:
        return None, reader.issues
    inferred = "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
    return Score(
        id=texts["id"] or None,
        name=name,
        data_type=data_type or inferred,
        value=value,
        trace_id=texts["traceId"] or None,
        observation_id=texts["observationId"] or None,
        session_id=texts["sessionId"] or None,
        experiment_id=texts["datasetRunId"] or None,
        comment=texts["comment"],
        metadata=_metadata(body.get("metadata")),
        environment=environment,
        config_id=config_id,
        queue_id=queue_id,
        source=source or "API",
        timestamp=sent_at if timestamp is None else timestamp,
    ), []


def core(row: Row, project_id: str) -> dict[str, Any]:
    """The fields that every answer with scores has."""
    value: Any = row["text"] if row["number"] is None else jsonvalues.number(row["number"])
    if row["data_type"] == "BOOLEAN":
        value = bool(value)
    return {
        "id": row["id"],
        "projectId": project_id,
        "name": row["name"],
        "dataType": row["data_type"],
        "value": value,
        "source": row["source"],
        "timestamp": times.iso(row["timestamp"]),
        "environment": row["environment"],
        "createdAt": times.iso(row["created_at"]),
        "updatedAt": times.iso(row["updated_at"]),
    }


def details(row: Row) -> dict[str, Any]:
    """The field group ``details``."""
    return {
        "comment": row["comment"],
        "configId": row["config_id"],
        "metadata": {} if row["metadata"] is None else jsonvalues.loads(row["metadata"]),
    }


def annotation(row: Row) -> dict[str, Any]:
    """The field group ``annotation``."""
    return {"authorUserId": row["author_user_id"], "queueId": row["queue_id"]}


def subject(row: Row) -> dict[str, Any]:
    """The field group ``subject``: what the score belongs to."""
    if row["experiment_id"]:
        found = {"kind": "experiment", "id": row["experiment_id"]}
    elif row["session_id"]:
        found = {"kind": "session", "id": row["session_id"]}
    elif row["observation_id"]:
        found = {"kind": "observation", "id": row["observation_id"], "traceId": row["trace_id"]}
    else:
        found = {"kind": "trace", "id": row["trace_id"]}
    return {"subject": found}


def _value(reader: BodyReader, data_type: str | None) -> float | str | None:
    value = reader.body.get("value", MISSING)
    path = reader.path("value")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if data_type in ("NUMERIC", "BOOLEAN") and not is_number:
        reader.issues.append(validation.wrong_type("number", value, path))
    elif data_type in ("CATEGORICAL", "TEXT", "CORRECTION") and not isinstance(value, str):
        reader.issues.append(validation.wrong_type("string", value, path))
    elif not is_number and not isinstance(value, str):
        reader.issues.append(
            {
                "code": "invalid_union",
                "errors": [
                    [validation.wrong_type("string", value, [])],
                    [validation.wrong_type("number", value, [])],
                ],
                "path": path,
                "message": "Invalid input",
            }
        )
    elif data_type == "BOOLEAN" and value not in (0, 1):
        reader.issues.append(
            validation.custom("Value must be a number equal to either 0 or 1 for data type BOOLEAN", path)
        )
    elif data_type == "TEXT" and isinstance(value, str) and not 1 <= len(value) <= _MAX_TEXT:
        reader.issues.append(validation.custom(f"Value must have 1 to {_MAX_TEXT} characters for data type TEXT", path))
    elif isinstance(value, str):
        return value
    elif isinstance(value, int | float):
        return float(value)
    return None


def _timestamp(reader: BodyReader) -> int | None:
    raw = reader.text("timestamp")
    if raw is None:
        return None
    ms = times.parse_zoned(raw)
    if ms is None:
        reader.issues.append(validation.invalid_datetime(reader.path("timestamp")))
    return ms


def _one_target(texts: Mapping[str, str | None]) -> bool:
    targets = [texts[field] for field in ("traceId", "sessionId", "datasetRunId") if texts[field]]
    return len(targets) == 1 and not (texts["observationId"] and not texts["traceId"])


def _metadata(value: Any) -> Any:
    return None if value is None else jsonvalues.normalise(value)
