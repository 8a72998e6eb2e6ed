"""Scores in Langfuse: written with ids of their own, read back, and sent again where the server dropped them.

Some servers refuse the array form of POST /scores in which SDK 5 sends: the SDK logs one line, the scores are gone and
the run returns normally. Since each score's id follows from what it belongs to, sending it again is harmless.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from langfuse.api.core import ApiError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from evals.recording.client import NOT_LANGFUSE, READ_ERRORS, Recorder
from evals.scoring import Score

_PAGE = 100
_PATIENCE = 20.0  # seconds without progress before what is missing is sent again, or given up
_INTERVAL = 1.0  # seconds between looks
_BATCH = 50


@dataclass(frozen=True)
class PlacedScore:
    """A score and where it belongs: a trial's observation, or a whole experiment."""

    score: Score
    trace_id: str | None = None
    observation_id: str | None = None
    experiment_id: str | None = None

    @property
    def id(self) -> str:
        """The same for the same score of the same place, so that writing it twice leaves one."""
        place = "/".join((self.trace_id or "", self.observation_id or "", self.experiment_id or "", self.score.name))
        return hashlib.sha256(place.encode()).hexdigest()[:32]

    @property
    def data_type(self) -> str:
        return "BOOLEAN" if isinstance(self.score.value, bool) else "NUMERIC"

    def body(self) -> dict[str, Any]:
        """As POST /scores and /ingestion take it."""
        fields = {
            "id": self.id,
            "name": self.score.name,
            "value": float(self.score.value),
            "dataType": self.data_type,
            "comment": self.score.comment,
            "traceId": self.trace_id,
            "observationId": self.observation_id,
            "datasetRunId": self.experiment_id,
        }
        return {key: value for key, value in fields.items() if value is not None}


@dataclass(frozen=True)
class Recorded:
    """What a run's recording came to, read back from the server."""

    trials: int
    trials_expected: int
    scores: int
    scores_expected: int
    resent: int = 0
    """Scores the server had dropped, or not shown in time, and that were sent again."""
    problem: str | None = None

    @property
    def complete(self) -> bool:
        return self.trials == self.trials_expected and self.scores == self.scores_expected

    def line(self) -> str:
        """`recorded: 20/20 trials, 41/41 scores`."""
        line = f"recorded: {self.trials}/{self.trials_expected} trials, {self.scores}/{self.scores_expected} scores"
        if self.resent:
            line += f" ({self.resent} scores sent again)"
        if not self.complete:
            line += f": INCOMPLETE{f', {self.problem}' if self.problem else ''}"
        return line


def write_score(recorder: Recorder, placed: PlacedScore) -> None:
    """Queue a score; the SDK sends it in the background."""
    score = placed.score
    recorder.client.create_score(
        score_id=placed.id,
        name=score.name,
        value=float(score.value),
        data_type="BOOLEAN" if isinstance(score.value, bool) else "NUMERIC",
        comment=score.comment,
        trace_id=placed.trace_id,
        observation_id=placed.observation_id,
        dataset_run_id=placed.experiment_id,
    )


def read_back(
    recorder: Recorder,
    *,
    experiment_id: str,
    since: datetime,
    trials: int,
    trace_ids: Sequence[str],
    scores: Sequence[PlacedScore],
    patience: float = _PATIENCE,
) -> Recorded:
    """Wait until the trials and scores of an experiment can be read, sending missing scores again once.

    since: when the run started. trials: how many it had. trace_ids: the traces of those that have one. patience:
    seconds without progress to wait, first before sending again, then before giving up; a server may take 20 s to show
    a score.
    """
    # A server that refused the form the scores were sent in shows none of them; it need not be waited for long.
    wanted = {placed.id for placed in scores}
    look = _Look(recorder, experiment_id, since - timedelta(minutes=1), set(trace_ids), wanted)
    problem = look.wait(patience if look.any_score() else min(patience, 8.0))
    missing = [placed for placed in scores if placed.id not in look.scores]
    resent = 0
    if missing:
        refused = _send_again(recorder, missing)
        problem = refused or problem
        resent = 0 if refused else len(missing)
        problem = look.wait(patience) or problem
    return Recorded(
        trials=len(look.trials),
        trials_expected=trials,
        scores=len(look.scores),
        scores_expected=len(wanted),
        resent=resent,
        problem=problem,
    )


class _Look:
    """What of a run can be read so far."""

    def __init__(
        self, recorder: Recorder, experiment_id: str, since: datetime, trials: set[str], scores: set[str]
    ) -> None:
        self._recorder = recorder
        self._experiment_id = experiment_id
        self._since = since
        self.expected_trials = trials
        self.expected_scores = scores
        self.trials: set[str] = set()
        self.scores: set[str] = set()

    def complete(self) -> bool:
        return self.trials == self.expected_trials and self.scores == self.expected_scores

    def any_score(self) -> bool:
        try:
            self._once()
        except READ_ERRORS:
            return False
        return bool(self.scores)

    def wait(self, patience: float) -> str | None:
        """Look until all is there or nothing has come for `patience` seconds; the server's complaint, if any."""
        problem = None
        last_progress = time.monotonic()
        while True:
            before = (len(self.trials), len(self.scores))
            try:
                self._once()
                problem = None
            except READ_ERRORS as error:
                problem = _complaint(error)
            if self.complete():
                return None
            now = time.monotonic()
            if (len(self.trials), len(self.scores)) != before:
                last_progress = now
            elif now - last_progress >= patience:
                return problem
            time.sleep(_INTERVAL)

    def _once(self) -> None:
        api = self._recorder.client.api
        cursor: str | None = None
        while True:
            page = api.experiments.list_items(
                from_start_time=self._since,
                experiment_id=self._experiment_id,
                fields="core,scores",
                score_limit=50,
                limit=_PAGE,
                cursor=cursor,
            )
            for row in page.data:
                if row.trace_id in self.expected_trials:
                    self.trials.add(row.trace_id)
                self._saw(row.scores or [])
            cursor = page.meta.cursor
            if not cursor:
                break
        for experiment in api.experiments.list(
            from_start_time=self._since, id=self._experiment_id, fields="core,scores", score_limit=50
        ).data:
            self._saw(experiment.scores or [])

    def _saw(self, scores: Iterable[Any]) -> None:
        self.scores |= {score.id for score in scores} & self.expected_scores


def _send_again(recorder: Recorder, missing: Sequence[PlacedScore]) -> str | None:
    """In the form this server takes: a batch to /ingestion, else one by one to /scores. The complaint, if any."""
    keys = recorder.server.keys
    with httpx.Client(base_url=keys.base_url, auth=(keys.public_key, keys.secret_key), timeout=20) as http:
        left: list[PlacedScore] = []
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            left += _ingest(http, batch)
        problem = None
        for placed in left:
            try:
                answer = _post(http, "/api/public/scores", placed.body())
            except httpx.HTTPError as error:
                return _complaint(error)
            if answer.status_code >= 300:
                problem = f"POST /scores answered {answer.status_code}"
        return problem


def _ingest(http: httpx.Client, batch: Sequence[PlacedScore]) -> list[PlacedScore]:
    """Those of the batch that /ingestion did not take."""
    events = {str(uuid.uuid4()): placed for placed in batch}  # event ids: the server answers by them
    body = {
        "batch": [
            {
                "id": event,
                "type": "score-create",
                "timestamp": datetime.now(UTC).isoformat(),
                "body": placed.body(),
            }
            for event, placed in events.items()
        ]
    }
    try:
        answer = _post(http, "/api/public/ingestion", body)
        taken = (
            {str(one["id"]) for one in answer.json()["successes"]} if answer.status_code in (200, 201, 207) else set()
        )
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        taken = set()
    return [placed for event, placed in events.items() if event not in taken]


def _post(http: httpx.Client, path: str, body: dict[str, Any]) -> httpx.Response:
    for attempt in Retrying(
        retry=retry_if_exception_type(httpx.TransportError),
        stop=stop_after_attempt(3),
        wait=wait_exponential(multiplier=0.5, max=5),
        reraise=True,
    ):
        with attempt:
            return http.post(path, json=body)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _complaint(error: Exception) -> str:
    if isinstance(error, ApiError):
        return f"the server answered {error.status_code}"
    if isinstance(error, httpx.HTTPError):
        return f"the server cannot be reached ({type(error).__name__})"
    return f"the server {NOT_LANGFUSE}"
