"""What Langfuse sees of a judge: an evaluator observation with the model's generations under it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evals.judges import JudgeError, Vote

if TYPE_CHECKING:
    from langfuse import LangfuseEvaluator

NAME = "judge"
_STATUS_LENGTH = 500  # characters


class Observed:
    """One judge's observation; does nothing when the run is not recorded."""

    def __init__(self, observation: LangfuseEvaluator | None) -> None:
        self._observation = observation

    def voted(self, vote: Vote) -> None:
        if self._observation is not None:
            self._observation.update(output={"verdict": vote.verdict, "reason": vote.reason})

    @contextmanager
    def generation(self, model: str, prompt: Any) -> Iterator[Any]:
        """A generation of a model whose client does not record itself; yields what to `update`, or None."""
        if self._observation is None:
            yield None
            return
        with self._observation.start_as_current_observation(
            as_type="generation", name=model, model=model, input=prompt
        ) as generation:
            yield generation


@contextmanager
def observed(public_key: str | None, model: str, query: str, reference: str) -> Iterator[Observed]:
    """The judge's observation, under the current one of the Langfuse client that has this public key.

    A JudgeError that leaves the block is noted on it, at level ERROR.
    """
    if public_key is None:
        yield Observed(None)
        return
    from langfuse import get_client

    with get_client(public_key=public_key).start_as_current_observation(
        as_type="evaluator",
        name=NAME,
        input={"query": query, "reference": reference},
        metadata={"model": model},
    ) as observation:
        try:
            yield Observed(observation)
        except JudgeError as error:
            observation.update(level="ERROR", status_message=error.cause[:_STATUS_LENGTH])
            raise
