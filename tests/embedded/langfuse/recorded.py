"""The exchanges recorded with a Langfuse 4.16.0 server, replayed in order against the store.

Format of the data: one JSON object a line (name, method, path as sent, query, request headers and body, status,
content type and body of the answer); a protobuf body is base64. Times and generated ids are those of the
recording: the store is given its clock and its ids, so that they need no normalising.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from evals.embedded.langfuse import Database, Project, StoreSettings, create_app
from evals.embedded.langfuse.settings import IdKind
from evals.embedded.langfuse.times import parse_zoned

DATA = Path(__file__).parent / "data"
PUBLIC_KEY = "pk-lf-example"
SECRET_KEY = "sk-lf-the-recorded-one-is-not-known"

# The official CLI was run after the writes and before the reads of the other file.
_CLI_BEFORE = "observations-plain-trace-default-fields"

# What the recorded project held before: datasets by name, active items in all, and one older trace.
_OLDER_ITEMS = 354
_OLDER_TRACE = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "scope": {"name": "example-scope"},
                    "spans": [
                        {
                            "traceId": "00000000000000000000000000000abc",
                            "spanId": "0000000000000abc",
                            "name": "chat-turn",
                            "startTimeUnixNano": "1795978000000000000",
                            "endTimeUnixNano": "1795978001000000000",
                            "attributes": [{"key": "user.id", "value": {"stringValue": "user-1"}}],
                        }
                    ],
                }
            ]
        }
    ]
}


@dataclass(frozen=True)
class Exchange:
    """One recorded request with its answer."""

    name: str
    method: str
    path: str
    query: dict[str, str | list[str]]
    request_headers: dict[str, str]
    request_body: Any
    status: int
    response_content_type: str | None
    response_body: Any

    def content(self) -> bytes | None:
        """The body as it was sent."""
        if self.request_body is None:
            return None
        kind = self.request_headers.get("content-type", "")
        if kind == "application/x-protobuf":
            return base64.b64decode(self.request_body)
        if isinstance(self.request_body, str):
            return self.request_body.encode()
        return json.dumps(self.request_body).encode()

    def auth(self) -> tuple[str, str] | None:
        """The keys it was sent with."""
        if "no-auth" in self.name or self.name in ("health", "cli-api-version-auto-1"):
            return None
        if "wrong-secret-key" in self.name or "wrong-key" in self.name:
            return PUBLIC_KEY, "sk-lf-wrong"
        if "unknown-public-key" in self.name:
            return "pk-lf-unknown", SECRET_KEY
        return PUBLIC_KEY, SECRET_KEY


@dataclass(frozen=True)
class Answer:
    """What the store answered."""

    status: int
    content_type: str | None
    body: Any


def recorded() -> list[Exchange]:
    """All exchanges, in the order in which they were made."""
    exchanges = _read("exchanges.jsonl")
    start = next(place for place, each in enumerate(exchanges) if each.name == _CLI_BEFORE)
    return [*exchanges[:start], *_read("cli_exchanges.jsonl"), *exchanges[start:]]


def replay(folder: Path) -> dict[str, Answer]:
    """Make every request against a new store in `folder`; the answers by name of the exchange."""
    return asyncio.run(_replay(folder))


@dataclass
class Recording:
    """The clock and the ids of the recorded server, moved on from one exchange to the next."""

    now: int = 0
    next_id: str | None = None
    score_times: dict[str, int] = field(default_factory=dict)

    def clock(self) -> int:
        """The time now (milliseconds)."""
        return self.now

    def new_id(self, kind: IdKind) -> str:
        """The id that the recorded server generated; asking where it generated none is a failure."""
        assert self.next_id is not None, f"an id of kind {kind} is generated where none was"
        found, self.next_id = self.next_id, None
        return found

    def move_to(self, exchange: Exchange) -> None:
        """Set clock and id to those of the exchange that is made next."""
        body = exchange.response_body
        if not isinstance(body, dict) or exchange.method == "GET":
            return
        job = body.get("data", {})
        stamps = [body.get("updatedAt"), job.get("timestamp") if isinstance(job, dict) else None]
        moment = next((parse_zoned(each) for each in stamps if each), None)
        sent = exchange.request_body if isinstance(exchange.request_body, dict) else {}
        ids = [body.get("id"), *(each["body"].get("id") for each in sent.get("batch", []) if isinstance(each, dict))]
        moment = moment or next((self.score_times[each] for each in ids if each in self.score_times), None)
        self.now = moment or self.now
        generated = job["id"] if "id" in job else body.get("id")
        self.next_id = None if generated == sent.get("id") else generated


async def _replay(folder: Path) -> dict[str, Answer]:
    exchanges = recorded()
    recording = Recording()
    database = Database(folder / "langfuse.db")
    settings = StoreSettings(
        project=Project("proj-test", "TestProject", "org-test", "TestOrg"),
        public_key=PUBLIC_KEY,
        secret_key=SECRET_KEY,
        refuse_score_arrays=True,
        now=recording.clock,
        new_id=recording.new_id,
    )
    transport = httpx.ASGITransport(create_app(database, settings), raise_app_exceptions=True)
    answers = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://store") as client:
        await _add_history(client, recording, exchanges)
        recording.score_times = dict(_score_times(exchanges))
        for exchange in exchanges:
            recording.move_to(exchange)
            answers[exchange.name] = await _ask(client, exchange)
    database.close()
    return answers


async def _ask(client: httpx.AsyncClient, exchange: Exchange) -> Answer:
    request = client.build_request(
        exchange.method,
        exchange.path,
        params=exchange.query or None,
        content=exchange.content(),
        headers=exchange.request_headers,
    )
    keys = exchange.auth()
    response = await client.send(request, auth=httpx.BasicAuth(*keys) if keys else None)
    try:
        body = response.json() if response.content else None
    except ValueError:
        body = response.text
    return Answer(response.status_code, response.headers.get("content-type"), body)


async def _add_history(client: httpx.AsyncClient, recording: Recording, exchanges: list[Exchange]) -> None:
    """Write what lists of the whole project show from before the recording."""
    listed = next(each for each in exchanges if each.name == "cli-datasets-list-1").response_body["data"]
    own = {
        each.request_body.get("name")
        for each in exchanges
        if each.path == "/api/public/v2/datasets" and isinstance(each.request_body, dict)
    }
    older = [each for each in reversed(listed) if each["name"] not in own]
    requests = []
    for each in older:
        sent = {key: each[key] for key in ("name", "description", "metadata", "inputSchema", "expectedOutputSchema")}
        requests += [
            ("/api/public/v2/datasets", each["createdAt"], each["id"], sent),
            ("/api/public/v2/datasets", each["updatedAt"], None, sent),
        ]
    plain = next(each["name"] for each in older if each["inputSchema"] is None)
    written = older[0]["createdAt"]
    requests += [
        ("/api/public/dataset-items", written, None, {"datasetName": plain, "id": f"older/{number}", "input": 1})
        for number in range(_OLDER_ITEMS)
    ]
    requests.append(("/api/public/otel/v1/traces", written, "older-job", _OLDER_TRACE))
    for path, moment, generated, body in requests:
        recording.now = parse_zoned(moment) or 0
        recording.next_id = generated
        response = await client.post(path, json=body, auth=(PUBLIC_KEY, SECRET_KEY))
        assert response.status_code == 200, response.text


def _score_times(exchanges: list[Exchange]) -> Iterator[tuple[str, int]]:
    """When the recorded server took a score, by id: its own timestamp where the request gave none."""
    sent_with_time = {
        event["body"]["id"]
        for each in exchanges
        if each.path.endswith("/ingestion") and isinstance(each.request_body, dict)
        for event in each.request_body["batch"]
        if isinstance(event, dict) and "id" in event["body"]
    }
    for each in exchanges:
        if each.path.endswith("/v3/scores") and each.status == 200:
            for score in each.response_body["data"]:
                stamp = score["createdAt" if score["id"] in sent_with_time else "timestamp"]
                moment = parse_zoned(stamp)
                assert moment is not None
                yield score["id"], moment


def _read(name: str) -> list[Exchange]:
    fields = Exchange.__dataclass_fields__
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [Exchange(**{key: value for key, value in json.loads(line).items() if key in fields}) for line in lines]
