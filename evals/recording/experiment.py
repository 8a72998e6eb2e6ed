"""The experiment of a run: its id, its address, and the loop, which is the Langfuse SDK's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote

from evals.errors import TwogateError
from evals.recording.client import READ_ERRORS, Recorder


def project_id(recorder: Recorder) -> str:
    """The project the keys belong to. Raises TwogateError when the server does not say."""
    try:
        projects = recorder.client.api.projects.get().data
    except READ_ERRORS as error:
        where = recorder.server.keys.base_url
        raise TwogateError(
            f"{where} does not name the project of the keys ({type(error).__name__}); try again"
        ) from None
    if not projects:
        raise TwogateError("the Langfuse keys belong to no project; make keys in a project's settings")
    return str(projects[0].id)


def experiment_id(project: str, dataset: str, run: str) -> str:
    """The id Langfuse itself derives for a run of a dataset.

    The first 16 hex digits of the SHA-256 of the compact JSON ``["langfuse-experiment-v1",project,dataset,run]``, as
    the Langfuse SDK 5 and server have it.
    """
    payload = json.dumps(["langfuse-experiment-v1", project, dataset, run], separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(payload.encode()).hexdigest()[:16]


def experiment_url(recorder: Recorder, project: str, experiment: str) -> str:
    base = recorder.server.keys.base_url
    return f"{base}/project/{quote(project, safe='')}/experiments/results?baseline={quote(experiment, safe='')}"


def run_experiment(
    recorder: Recorder,
    *,
    run: str,
    experiment: str,
    data: Sequence[Any],
    task: Callable[[Any], Awaitable[Any]],
    concurrency: int,
    metadata: dict[str, str],
    description: str,
) -> None:
    """Run `task` on every dataset item of `data` (an item may stand several times), `concurrency` at a time.

    Blocks, with an event loop of its own. An interrupt cancels the trials that run, lets them clean up, and is raised.
    """

    async def call(*, item: Any, **_: Any) -> Any:
        return await task(item)

    recorder.client.run_experiment(
        name=run,
        run_name=run,
        experiment_id=experiment,
        description=description,
        data=list(data),
        task=call,
        max_concurrency=concurrency,
        metadata=metadata,
    )
