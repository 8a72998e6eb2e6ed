"""A span as an observation: which attribute means what.

Source: the attribute names of the Langfuse SDK (``langfuse._client.attributes``), the OpenTelemetry
conventions for generative AI, and observations recorded with a Langfuse 4.16.0 server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evals.embedded.langfuse import jsonvalues, times
from evals.embedded.langfuse.otlp import Span
from evals.embedded.langfuse.usage import amounts, total_of, usage_details

OBSERVATION_TYPES = (
    "GENERATION",
    "SPAN",
    "EVENT",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
)
LEVELS = ("DEBUG", "DEFAULT", "WARNING", "ERROR")

_SDK_SCOPE = "langfuse-sdk"
_OBSERVATION_METADATA = "langfuse.observation.metadata"
_TRACE_METADATA = "langfuse.trace.metadata"
_INPUT = (
    "langfuse.observation.input",
    "gen_ai.input.messages",
    "gen_ai.tool.call.arguments",
    "input.value",
)
_OUTPUT = (
    "langfuse.observation.output",
    "gen_ai.output.messages",
    "gen_ai.tool.call.result",
    "output.value",
)
_OPERATION_TYPES = {
    "chat": "GENERATION",
    "completion": "GENERATION",
    "text_completion": "GENERATION",
    "generate_content": "GENERATION",
    "embeddings": "EMBEDDING",
    "invoke_agent": "AGENT",
    "create_agent": "AGENT",
    "execute_tool": "TOOL",
}


@dataclass(frozen=True)
class Observation:
    """A row of the observations table; the fields carry the names of its columns. Times in milliseconds."""

    trace_id: str
    id: str
    parent_id: str
    is_root: bool
    start_ms: int
    end_ms: int | None
    completion_start_ms: int | None
    type: str
    name: str
    level: str
    status_message: str
    version: str
    environment: str
    user_id: str
    session_id: str
    trace_name: str | None
    release: str
    tags: str
    public: bool
    input: str | None
    output: str | None
    metadata: str
    model: str
    model_parameters: str
    usage_details: str
    input_usage: float
    output_usage: float
    total_usage: float
    cost_details: str
    input_cost: float | None
    output_cost: float | None
    total_cost: float
    prompt_name: str
    prompt_version: int | None
    experiment_id: str
    experiment_name: str
    experiment_description: str
    experiment_metadata: str
    experiment_dataset_id: str
    experiment_item_id: str
    experiment_item_version: str
    experiment_item_root_id: str
    experiment_item_metadata: str
    expected_output: str | None
    created_at: int
    updated_at: int


def observation(span: Span, now: int) -> Observation:
    """The observation of a span that arrives at `now` (milliseconds)."""
    found = _Attributes(span.attributes)
    is_root = not span.parent_id or found.flag("langfuse.internal.is_app_root")
    usage = usage_details(_first_json(found, "langfuse.observation.usage_details")) or _gen_ai_usage(found)
    cost = amounts(_first_json(found, "langfuse.observation.cost_details"))
    start_ms = span.start_ns // 1_000_000
    type_ = _type(found)
    return Observation(
        trace_id=span.trace_id,
        id=span.span_id,
        parent_id=span.parent_id,
        is_root=is_root,
        start_ms=start_ms,
        end_ms=span.end_ns // 1_000_000 if span.end_ns else None,
        completion_start_ms=_instant(found.text("langfuse.observation.completion_start_time")),
        type=type_,
        name=span.name,
        level=_level(found, span),
        status_message=found.text("langfuse.observation.status_message") or span.status_message,
        version=found.text("langfuse.version"),
        environment=found.text("langfuse.environment", "deployment.environment.name", "deployment.environment")
        or _resource_environment(span)
        or "default",
        user_id=found.text("user.id", "langfuse.user.id"),
        session_id=found.text("session.id", "langfuse.session.id"),
        trace_name=found.text("langfuse.trace.name") or (span.name if is_root else None),
        release=found.text("langfuse.release"),
        tags=jsonvalues.dumps(_tags(found.value("langfuse.trace.tags"))),
        public=found.flag("langfuse.trace.public"),
        input=found.content(*_INPUT),
        output=found.content(*_OUTPUT),
        metadata=jsonvalues.dumps(_metadata(span)),
        model=found.text("langfuse.observation.model.name", "gen_ai.request.model", "gen_ai.response.model"),
        model_parameters=jsonvalues.dumps(_mapping(_first_json(found, "langfuse.observation.model.parameters"))),
        usage_details=jsonvalues.dumps(usage),
        input_usage=total_of(usage, "input") or 0.0,
        output_usage=total_of(usage, "output") or 0.0,
        total_usage=float(usage.get("total", 0)),
        cost_details=jsonvalues.dumps(cost),
        input_cost=total_of(cost, "input"),
        output_cost=total_of(cost, "output"),
        total_cost=float(cost.get("total", 0)),
        prompt_name=found.text("langfuse.observation.prompt.name"),
        prompt_version=_integer(found.value("langfuse.observation.prompt.version")),
        experiment_id=found.text("langfuse.experiment.id"),
        experiment_name=found.text("langfuse.experiment.name"),
        experiment_description=found.text("langfuse.experiment.description"),
        experiment_metadata=_flat(found, "langfuse.experiment.metadata"),
        experiment_dataset_id=found.text("langfuse.experiment.dataset.id"),
        experiment_item_id=found.text("langfuse.experiment.item.id"),
        experiment_item_version=found.text("langfuse.experiment.item.version"),
        experiment_item_root_id=found.text("langfuse.experiment.item.root_observation_id"),
        experiment_item_metadata=_flat(found, "langfuse.experiment.item.metadata"),
        expected_output=found.content("langfuse.experiment.item.expected_output"),
        created_at=now,
        updated_at=now,
    )


class _Attributes:
    """The attributes of a span, read by the kind of value expected; later names are fallbacks."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._attributes = attributes

    def value(self, *names: str) -> Any:
        return next((self._attributes[name] for name in names if self._attributes.get(name) is not None), None)

    def text(self, *names: str) -> str:
        value = self.value(*names)
        return "" if value is None else _text(value)

    def content(self, *names: str) -> str | None:
        value = self.value(*names)
        return None if value is None else _text(value)

    def flag(self, name: str) -> bool:
        return self.value(name) in (True, "true")


def _text(value: Any) -> str:
    """A text as it is, everything else as JSON."""
    return value if isinstance(value, str) else jsonvalues.dumps(value)


def _type(found: _Attributes) -> str:
    named = found.text("langfuse.observation.type", "openinference.span.kind").upper()
    if named in OBSERVATION_TYPES:
        return named
    if named == "LLM":
        return "GENERATION"
    operation = found.text("gen_ai.operation.name")
    if operation in _OPERATION_TYPES:
        return _OPERATION_TYPES[operation]
    has_model = found.value("langfuse.observation.model.name", "gen_ai.request.model", "gen_ai.response.model")
    return "GENERATION" if has_model else "SPAN"


def _level(found: _Attributes, span: Span) -> str:
    named = found.text("langfuse.observation.level").upper()
    if named in LEVELS:
        return named
    return "ERROR" if span.status_code == 2 else "DEFAULT"


def _resource_environment(span: Span) -> str:
    resource = _Attributes(span.scope.resource)
    return resource.text("langfuse.environment", "deployment.environment.name", "deployment.environment")


def _metadata(span: Span) -> dict[str, str]:
    """Metadata keys and values as texts, the last written first, as the recorded server lists them.

    Attributes of spans that the Langfuse SDK made are not repeated here; those of other tracers are.
    """
    found: dict[str, str] = {}
    if span.scope.name != _SDK_SCOPE:
        hidden = (*_INPUT, *_OUTPUT)
        for key, value in span.attributes.items():
            if key not in hidden and not key.startswith((_OBSERVATION_METADATA, _TRACE_METADATA)):
                found[f"attributes.{key}"] = _text(value)
    for key, value in span.scope.resource.items():
        found[f"resourceAttributes.{key}"] = _text(value)
    if span.scope.name:
        found["scope.name"] = span.scope.name
    if span.scope.version:
        found["scope.version"] = span.scope.version
    for key, value in span.scope.attributes.items():
        found[f"scope.attributes.{key}"] = _text(value)
    for prefix in (_OBSERVATION_METADATA, _TRACE_METADATA):
        for key, value in span.attributes.items():
            if key.startswith(f"{prefix}."):
                found[key[len(prefix) + 1 :]] = _text(value)
            elif key == prefix:
                found |= _whole_metadata(_text(value))
    return dict(reversed(found.items()))


def _whole_metadata(text: str) -> dict[str, str]:
    """Metadata sent as one attribute: the keys of an object, or one key named ``metadata``."""
    value = jsonvalues.looks_parsed(text)
    if isinstance(value, dict):
        return {key: _text(each) for key, each in value.items()}
    return {"metadata": text}


def _flat(found: _Attributes, name: str) -> str:
    """A JSON object of texts: texts plain, everything else as JSON text."""
    return jsonvalues.dumps({key: _text(value) for key, value in _mapping(_first_json(found, name)).items()})


def _first_json(found: _Attributes, name: str) -> Any:
    value = found.value(name)
    return jsonvalues.looks_parsed(value) if isinstance(value, str) else value


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _gen_ai_usage(found: _Attributes) -> dict[str, float]:
    sent = {
        kind: found.value(*names)
        for kind, names in (
            ("input", ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")),
            ("output", ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")),
        )
    }
    return amounts(sent)


def _tags(value: Any) -> list[str]:
    if isinstance(value, str):
        parsed = jsonvalues.looks_parsed(value)
        value = parsed if isinstance(parsed, list) else [value]
    return [_text(each) for each in value] if isinstance(value, list) else []


def _instant(text: str) -> int | None:
    return times.parse_lenient(text.strip('"')) if text else None


def _integer(value: Any) -> int | None:
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if abs(whole) < 2**63 else None
