"""OTLP trace exports, protobuf or JSON, as spans. Protocol: opentelemetry-proto 1.x, ``ExportTraceServiceRequest``."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from evals.embedded.langfuse import errors, jsonvalues
from evals.embedded.langfuse.errors import JsonResponse

# Langfuse has no limit of its own here; this one keeps a broken client from filling the memory.
EXPORT_LIMIT = 256 * 1024 * 1024

_STATUS_CODES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}

AttributeValue = Any  # a JSON value


@dataclass(frozen=True)
class Scope:
    """The instrumentation a span comes from, and the resource it ran in."""

    name: str
    version: str
    attributes: Mapping[str, AttributeValue]
    resource: Mapping[str, AttributeValue]


@dataclass(frozen=True)
class Span:
    """One span; ids in hex, times in nanoseconds since the epoch, status code as in OTLP (2: error)."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, AttributeValue]
    status_code: int
    status_message: str
    scope: Scope


def refused(message: str, status_code: int = 400) -> errors.ApiError:
    """The export as a whole is refused."""
    return errors.ApiError(JsonResponse({"error": message}, status_code))


def decompressed(body: bytes, encoding: str) -> bytes:
    """The body without its content encoding (gzip or none). Raises ApiError."""
    if encoding.strip().lower() != "gzip":
        return body
    inflate = zlib.decompressobj(wbits=31)
    try:
        raw = inflate.decompress(body, EXPORT_LIMIT)
    except zlib.error:
        raise refused("Failed to decompress request body") from None
    if inflate.unconsumed_tail:
        raise refused(f"The export is larger than {EXPORT_LIMIT} bytes", 413)
    if not inflate.eof:
        raise refused("Failed to decompress request body")
    return raw


def decode(body: bytes, content_type: str) -> list[Span]:
    """The spans of an export. Raises ApiError: one bad span refuses all of them."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-protobuf":
        return _from_protobuf(body)
    if kind == "application/json":
        return _from_json(body)
    raise refused("Invalid content type")


def _from_protobuf(body: bytes) -> list[Span]:
    message = ExportTraceServiceRequest()
    try:
        message.ParseFromString(body)
    except DecodeError:
        raise refused("Failed to parse OTel Protobuf Trace") from None
    spans: list[Span] = []
    problems = _Problems()
    for resource_spans in message.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = Scope(
                scope_spans.scope.name,
                scope_spans.scope.version,
                _attributes(scope_spans.scope.attributes),
                resource,
            )
            for span in scope_spans.spans:
                absent = [
                    f"{label}:absent"
                    for label, value in (("traceId", span.trace_id), ("spanId", span.span_id))
                    if not value
                ]
                problems.count(absent, scope.name)
                spans.append(
                    Span(
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.name,
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                        _attributes(span.attributes),
                        span.status.code,
                        span.status.message,
                        scope,
                    )
                )
    problems.done()
    return spans


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, AttributeValue]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> AttributeValue:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "bytes_value":
        return value.bytes_value.hex()
    plain = getattr(value, kind)
    return jsonvalues.number(plain) if kind == "double_value" else plain


class _Problems:
    """Why spans cannot be processed; `done` refuses the export when there is any."""

    def __init__(self) -> None:
        self.spans = 0
        self.bad = 0
        self.reasons: dict[str, None] = {}
        self.scopes: dict[str, None] = {}

    def count(self, reasons: list[str], scope: str) -> None:
        self.spans += 1
        self.bad += bool(reasons)
        self.note(reasons, scope)

    def note(self, reasons: list[str], scope: str) -> None:
        for reason in reasons:
            self.reasons[reason] = None
        if reasons and scope:
            self.scopes[scope] = None

    def done(self) -> None:
        if not self.reasons:
            return
        hints = []
        if any(reason.startswith(("traceId", "spanId")) for reason in self.reasons):
            hints.append("traceId and spanId are required on every span, and each must be a string or a byte array.")
        if any(reason.endswith("not_an_array") for reason in self.reasons):
            hints.append(
                "scopeSpans, spans, attributes and events must all be arrays — OTLP attributes are a list of "
                "{key, value} entries, not a JSON object."
            )
        scopes = f" Instrumentation scopes: {', '.join(self.scopes)}." if self.scopes else ""
        raise refused(
            f"Invalid OTLP trace export: {self.bad} of {self.spans} span(s) cannot be processed "
            f"({', '.join(self.reasons)}). {' '.join(hints)} The entire export was rejected and no spans were "
            f"ingested.{scopes} This endpoint accepts OpenTelemetry traces only — if you are exporting "
            "OpenTelemetry logs, point your log exporter elsewhere."
        )


def _from_json(body: bytes) -> list[Span]:
    try:
        export = jsonvalues.loads(body)
    except ValueError:
        raise refused("Failed to parse OTel JSON Trace") from None
    if not isinstance(export, dict):
        raise refused("Failed to parse OTel JSON Trace")
    spans: list[Span] = []
    problems = _Problems()
    for resource_spans in _objects(export, "resourceSpans", problems):
        resource = _json_attributes(_object(resource_spans, "resource"))
        for scope_spans in _objects(resource_spans, "scopeSpans", problems):
            described = _object(scope_spans, "scope")
            scope = Scope(
                str(described.get("name") or ""),
                str(described.get("version") or ""),
                _json_attributes(described),
                resource,
            )
            for span in _objects(scope_spans, "spans", problems, scope.name):
                reasons = [
                    f"{field}:{'absent' if span.get(field) is None else 'invalid'}"
                    for field in ("traceId", "spanId")
                    if not _json_id(span.get(field))
                ]
                reasons += [
                    f"{field}:not_an_array"
                    for field in ("attributes", "events")
                    if not isinstance(span.get(field) or [], list)
                ]
                problems.count(reasons, scope.name)
                if not reasons:
                    spans.append(_json_span(span, scope))
    problems.done()
    return spans


def _json_span(span: Mapping[str, Any], scope: Scope) -> Span:
    status = _object(span, "status")
    code = status.get("code", 0)
    return Span(
        _json_id(span["traceId"]),
        _json_id(span["spanId"]),
        _json_id(span.get("parentSpanId")),
        str(span.get("name") or ""),
        _json_integer(span.get("startTimeUnixNano")),
        _json_integer(span.get("endTimeUnixNano")),
        _json_attributes(span),
        _STATUS_CODES.get(code, 0) if isinstance(code, str) else _json_integer(code),
        str(status.get("message") or ""),
        scope,
    )


def _objects(parent: Mapping[str, Any], field: str, problems: _Problems, scope: str = "") -> list[Mapping[str, Any]]:
    found = parent.get(field) or []
    if not isinstance(found, list):
        problems.note([f"{field}:not_an_array"], scope)
        return []
    return [each for each in found if isinstance(each, dict)]


def _object(parent: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = parent.get(field)
    return found if isinstance(found, dict) else {}


def _json_attributes(parent: Mapping[str, Any]) -> dict[str, AttributeValue]:
    pairs = parent.get("attributes")
    if not isinstance(pairs, list):
        return {}
    return {
        str(pair["key"]): _json_value(pair.get("value")) for pair in pairs if isinstance(pair, dict) and "key" in pair
    }


def _json_value(value: Any) -> AttributeValue:
    if not isinstance(value, dict) or not value:
        return None
    kind, plain = next(iter(value.items()))
    if kind == "intValue":
        return _json_integer(plain)
    if kind == "arrayValue":
        return [_json_value(each) for each in _object(value, kind).get("values") or []]
    if kind == "kvlistValue":
        listed = _object(value, kind).get("values")
        return _json_attributes({"attributes": listed})
    return plain


def _json_integer(value: Any) -> int:
    try:
        return max(0, min(int(value or 0), 2**63 - 1))
    except (TypeError, ValueError):
        return 0


def _json_id(value: Any) -> str:
    """Hex as a text, or the bytes as a list (a serialised Node.js buffer has them under ``data``)."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = value.get("data")
    if isinstance(value, list) and all(isinstance(each, int) and 0 <= each < 256 for each in value):
        return bytes(value).hex()
    return ""
