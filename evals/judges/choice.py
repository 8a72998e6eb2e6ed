"""Which judge a command uses: from its options and the environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from evals.judges import (
    DEFAULT_CLAUDE_MODEL,
    DEFAULT_OPENROUTER_MODEL,
    DEFAULT_TIMEOUT,
    Judge,
    claude_judge,
    openrouter_judge,
    panel,
)
from evals.settings import (
    AGENT_VARIABLES,
    ANTHROPIC_API_KEY,
    ANTHROPIC_BASE_URL,
    OPENROUTER_API_KEY,
    OPENROUTER_BASE_URL,
    Settings,
)

LENIENT = "a Claude judge of a Claude agent may be lenient; hold it to your own labels with twogate judge check"


@dataclass(frozen=True)
class JudgeChoice:
    """The judge that was asked for."""

    models: tuple[str, ...] = ()
    """Each a vote; empty for the default model."""
    claude: bool = False
    """Judge on the Claude Agent SDK (`--claude-judge`) instead of OpenRouter."""
    subscription: bool = False
    """With `claude`: use the local login instead of a key."""

    @property
    def names(self) -> tuple[str, ...]:
        """The models that vote."""
        return self.models or (DEFAULT_CLAUDE_MODEL if self.claude else DEFAULT_OPENROUTER_MODEL,)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the output must say of this choice."""
        return (LENIENT,) if self.claude else ()

    def problems(self, settings: Settings, *, scripted: bool = False) -> list[str]:
        """Why this judge cannot be used, one line each; empty when it can.

        scripted: a scripted model answers, so that no key is needed.
        """
        found = [
            f"--judge-model {name}: stands {count} times; each model has one vote"
            for name, count in Counter(self.models).items()
            if count > 1
        ]
        found += ["--judge-model: is empty; name a model"] * any(not name.strip() for name in self.models)
        if scripted:
            return found
        if self.claude:
            if not self.subscription and not any(settings.get(name) for name in AGENT_VARIABLES):
                found.append(
                    f"{ANTHROPIC_API_KEY} is not set, and the Claude judge needs it; set it (see .env.example), "
                    f"use your login by --subscription, or set {OPENROUTER_API_KEY} and leave out --claude-judge"
                )
            return found
        if not settings.get(OPENROUTER_API_KEY):
            found.append(
                f"{OPENROUTER_API_KEY} is not set, and the judge needs it; set it (see .env.example), or let Claude "
                f"judge: --claude-judge, with {ANTHROPIC_API_KEY} or --subscription"
            )
        base_url = settings.get(OPENROUTER_BASE_URL)
        if base_url and not base_url.startswith(("http://", "https://")):
            found.append(f"{OPENROUTER_BASE_URL} is {base_url!r}; it must start with http:// or https://")
        return found


@dataclass(frozen=True)
class ScriptedUrls:
    """Where a scripted model listens: for the Messages API and for chat completions."""

    base_url: str
    openai_base_url: str


def make_judge(
    choice: JudgeChoice,
    settings: Settings,
    *,
    scripted: ScriptedUrls | None = None,
    langfuse_public_key: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Judge:
    """The judge that was asked for; `choice.problems` must be empty.

    scripted: let a scripted model answer in place of every model. The others as for `openrouter_judge`.
    """
    if choice.claude:
        credentials = _credentials(choice, settings, scripted)
        subscription = choice.subscription and scripted is None
        return panel(
            [
                claude_judge(name, credentials, subscription, langfuse_public_key=langfuse_public_key, timeout=timeout)
                for name in choice.names
            ]
        )
    key = "scripted" if scripted else settings.get(OPENROUTER_API_KEY) or ""
    base_url = scripted.openai_base_url if scripted else settings.get(OPENROUTER_BASE_URL)
    return panel(
        [
            openrouter_judge(name, key, base_url, langfuse_public_key=langfuse_public_key, timeout=timeout)
            for name in choice.names
        ]
    )


def _credentials(choice: JudgeChoice, settings: Settings, scripted: ScriptedUrls | None) -> Mapping[str, str]:
    if scripted is not None:
        return {ANTHROPIC_API_KEY: "scripted", ANTHROPIC_BASE_URL: scripted.base_url}
    names = (ANTHROPIC_BASE_URL,) if choice.subscription else (*AGENT_VARIABLES, ANTHROPIC_BASE_URL)
    return {name: value for name in names if (value := settings.get(name))}
