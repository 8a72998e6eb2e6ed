"""The store answers as a Langfuse 4.16.0 server did: every recorded exchange, in order."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from recorded import Answer, recorded, replay

EXCHANGES = {each.name: each for each in recorded()}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    return replay(tmp_path_factory.mktemp("replay"))


def without_queue_of_exports(body: Any) -> Any:
    """The recorded answer to an export describes the job queue behind it, which the store does not have."""
    if isinstance(body, dict) and body.get("name") == "otel-ingestion-job":
        body = {"name": body["name"], "data": body["data"]}
        body["data"]["payload"]["data"].pop("fileKey", None)
    return body


def without_score_queue_delay(body: Any) -> Any:
    """`updatedAt` of a score: the recorded server stored scores some seconds after taking them."""
    for score in _objects(body):
        if {"dataType", "source", "updatedAt"} <= score.keys():
            assert score["updatedAt"] >= score["createdAt"]
            del score["updatedAt"]
    return body


def without_span_queue_delay(body: Any) -> Any:
    """`createdAt`, `updatedAt` of an observation: when a worker of the recorded server came to store it."""
    for observation in _objects(body):
        if {"traceId", "completionStartTime", "createdAt"} <= observation.keys():
            assert observation.pop("createdAt") == observation.pop("updatedAt")
    return body


def without_page(body: Any) -> Any:
    """A page is compared by being one; the recorded ones are cut."""
    return "<!DOCTYPE html>" if isinstance(body, str) and body.startswith("<!DOCTYPE html>") else body


NORMALISATIONS: tuple[Callable[[Any], Any], ...] = (
    without_queue_of_exports,
    without_score_queue_delay,
    without_span_queue_delay,
    without_page,
)


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(found for each in value.values() for found in _objects(each))]
    if isinstance(value, list):
        return [found for each in value for found in _objects(each)]
    return []


def canonical(answer: Answer, normalisations: Sequence[Callable[[Any], Any]] = NORMALISATIONS) -> str:
    """The answer as text: 0, 0.0 and false differ in it; the order of keys does not."""
    body = copy.deepcopy(answer.body)
    for normalise in normalisations:
        body = normalise(body)
    return json.dumps([answer.status, answer.content_type, body], sort_keys=True, indent=1, ensure_ascii=False)


def theirs(name: str) -> Answer:
    exchange = EXCHANGES[name]
    return Answer(exchange.status, exchange.response_content_type, exchange.response_body)


def test_recording_is_complete() -> None:
    assert len(EXCHANGES) == 327 + 28


@pytest.mark.parametrize("name", EXCHANGES)
def test_answer_is_the_recorded_one(name: str, answers: dict[str, Answer]) -> None:
    assert canonical(answers[name]) == canonical(theirs(name))


@pytest.mark.parametrize("dropped", NORMALISATIONS)
def test_every_normalisation_is_needed(dropped: Callable[[Any], Any], answers: dict[str, Answer]) -> None:
    others = [each for each in NORMALISATIONS if each is not dropped]
    assert any(canonical(answers[name], others) != canonical(theirs(name), others) for name in EXCHANGES)


def test_keys_of_stored_values_come_back_in_the_recorded_order(answers: dict[str, Answer]) -> None:
    for name in ("items-key-order-and-big-numbers", "items-create-id-with-slashes", "items-metadata-object"):
        for field in ("input", "metadata"):
            assert json.dumps(answers[name].body[field]) == json.dumps(theirs(name).body[field]), name


def test_metadata_of_observations_comes_back_in_the_recorded_order(answers: dict[str, Answer]) -> None:
    name = "observations-plain-trace-all-field-groups"
    for ours, recorded_one in zip(answers[name].body["data"], theirs(name).body["data"], strict=True):
        assert list(ours["metadata"]) == list(recorded_one["metadata"])
