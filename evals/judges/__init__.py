"""Judges: models that decide whether an agent did what an item's reference demands.

What a judge sees and how its answer is read is `evals.scoring.judge`; here are the ways to a model. A new way is one
new file with a class that has `models` and `judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evals.conversation import Conversation, Usage
from evals.scoring.judge import Verdict

DEFAULT_OPENROUTER_MODEL = "deepseek/deepseek-v4-flash"
DEFAULT_OPENROUTER_URL = "https://openrouter.ai/api/v1"
DEFAULT_CLAUDE_MODEL = "claude-sonnet-5"
DEFAULT_TIMEOUT = 300.0
"""Seconds one judgement may take in all: every attempt, every answer asked for again, every wait between them."""

ASKS = 3
"""Answers asked of a model for one verdict: one, and two more after answers that could not be read."""


@dataclass(frozen=True)
class Vote:
    """What one model decided."""

    model: str
    verdict: Verdict
    reason: str
    cost_usd: float | None = None
    """US dollars for every answer this vote took; None when the service did not say."""
    usage: Usage | None = None
    """Tokens of every answer this vote took; None when the service did not say."""


@dataclass(frozen=True)
class Judgement:
    """A verdict and the votes it stands on, one for each model that gave one."""

    verdict: Verdict
    reason: str
    votes: tuple[Vote, ...]

    @property
    def cost_usd(self) -> float | None:
        """The sum of what is known; None when no vote's cost is."""
        known = [vote.cost_usd for vote in self.votes if vote.cost_usd is not None]
        return sum(known) if known else None


class JudgeError(Exception):
    """There is no verdict: the trial is an `error`, not a miss of the agent.

    cause: one line that names the judge and what went wrong. votes: those of a panel that were given all the same.
    """

    def __init__(self, cause: str, votes: tuple[Vote, ...] = ()) -> None:
        super().__init__(cause)
        self.cause = cause
        self.votes = votes


class Judge(Protocol):
    """Decides about conversations. One judge serves many judgements at the same time."""

    @property
    def models(self) -> tuple[str, ...]:
        """The models that vote."""
        ...

    async def judge(self, query: str, reference: str, conversation: Conversation) -> Judgement:
        """Judge one conversation. Raises JudgeError when there is no verdict; it never guesses one."""
        ...


def openrouter_judge(
    model: str,
    api_key: str,
    base_url: str | None = None,
    *,
    langfuse_public_key: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Judge:
    """A judge behind an OpenAI-compatible API, OpenRouter's unless `base_url` says another.

    langfuse_public_key: the key of the open Langfuse client whose current observation the judge records under; None
    records nothing. timeout: seconds one judgement may take in all.
    """
    from evals.judges.openrouter import OpenRouterJudge

    return OpenRouterJudge(
        model,
        api_key,
        base_url or DEFAULT_OPENROUTER_URL,
        langfuse_public_key=langfuse_public_key,
        timeout=timeout,
    )


def claude_judge(
    model: str,
    credentials: Mapping[str, str],
    subscription: bool,
    *,
    langfuse_public_key: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    cli_path: Path | None = None,
) -> Judge:
    """A judge on the Claude Agent SDK: no tools, no servers, no settings of the user.

    credentials: ANTHROPIC_API_KEY (or another of `settings.AGENT_VARIABLES`) and ANTHROPIC_BASE_URL as far as needed.
    subscription: use the local login instead of a key. The others as for `openrouter_judge`.
    """
    from evals.judges.claude import ClaudeJudge

    return ClaudeJudge(
        model,
        credentials,
        subscription=subscription,
        langfuse_public_key=langfuse_public_key,
        timeout=timeout,
        cli_path=cli_path,
    )


def panel(judges: Sequence[Judge]) -> Judge:
    """The majority of several judges (see `evals.judges.panel`); the judge itself when there is one.

    Raises ValueError when there is none.
    """
    from evals.judges.panel import Panel

    return judges[0] if len(judges) == 1 else Panel(tuple(judges))
