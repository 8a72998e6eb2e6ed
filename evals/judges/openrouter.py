"""A judge behind an OpenAI-compatible chat API, by default OpenRouter's.

How long one judgement can take: at most three answers are asked for when they cannot be read; each is tried at most
three times (`max_retries` 2, for lost connections, 408, 409, 429 and 5xx), in at most four forms of request; and each
try waits at most 60 seconds for the next byte. All of it ends at `timeout` seconds (default 300), whatever the service
does meanwhile, such as keeping a connection alive without an answer.
"""

from __future__ import annotations

from typing import Any

import openai

from evals.conversation import Conversation, Usage
from evals.judges import ASKS, JudgeError, Judgement, Vote
from evals.judges.single import judge_by
from evals.judges.tracing import Observed
from evals.redact import Redactor
from evals.scoring.judge import ASK_AGAIN, JudgeRequest, read_verdict, verdict_schema

_TRY_TIMEOUT = 60.0  # seconds a try waits for the next byte
_RETRIES = 2
_MAX_TOKENS = 8_000  # of an answer; a reasoning model thinks inside it
_QUOTED = 4_000  # characters of an unreadable answer that the model is shown again
_CAUSE = 300  # characters of a service's message in a cause


def _forms() -> tuple[dict[str, Any], ...]:
    """Forms of a request from the strictest to the barest: not every provider takes every parameter.

    DeepSeek's own API refuses json_schema, some providers refuse any response_format, other services refuse
    OpenRouter's `usage`, and some models a temperature.
    """
    schema = {"name": "verdict", "strict": True, "schema": verdict_schema()}
    shared: dict[str, Any] = {"temperature": 0, "extra_body": {"usage": {"include": True}}}
    return (
        {**shared, "response_format": {"type": "json_schema", "json_schema": schema}},
        {**shared, "response_format": {"type": "json_object"}},
        shared,
        {},
    )


class OpenRouterJudge:
    """One model. Safe to use for many judgements at once, on any event loop."""

    def __init__(
        self, model: str, api_key: str, base_url: str, *, langfuse_public_key: str | None, timeout: float
    ) -> None:
        self._model = model
        self._api_key = api_key
        self._base_url = base_url
        self._public_key = langfuse_public_key
        self._timeout = timeout
        self._redactor = Redactor([api_key])
        self._form = 0
        """The strictest form that a request was answered in; the stricter ones are not tried again."""

    @property
    def models(self) -> tuple[str, ...]:
        return (self._model,)

    async def judge(self, query: str, reference: str, conversation: Conversation) -> Judgement:
        return await judge_by(
            self._model,
            self._safe_vote,
            query,
            reference,
            conversation,
            public_key=self._public_key,
            time_limit=self._timeout,
        )

    async def _safe_vote(self, request: JudgeRequest, observation: Observed) -> Vote:
        """Whatever a service or a client makes of it: no verdict is an error, never a crash of the run."""
        try:
            return await self._vote(request)
        except (JudgeError, TimeoutError):
            raise
        except Exception as error:
            raise JudgeError(f"the judge {self._model} failed: {self._said(error)}") from error

    async def _vote(self, request: JudgeRequest) -> Vote:
        messages: list[dict[str, str]] = [
            {"role": "system", "content": request.instructions},
            {"role": "user", "content": request.material},
        ]
        again: list[dict[str, str]] = []
        spent = _Spent()
        trouble = ""
        # Opened and closed here: its connections belong to the running event loop.
        async with self._client() as client:
            for _ in range(ASKS):
                try:
                    completion = await self._complete(client, [*messages, *again])
                except ValueError as error:
                    trouble = f"no JSON ({error})"
                    continue
                spent.add(completion)
                text = _text(completion)
                answer = read_verdict(text)
                if answer is not None:
                    return Vote(self._model, answer.verdict, answer.reason, spent.cost_usd, spent.usage)
                trouble = _trouble(completion, text)
                # Without the bad answer the same question, at temperature 0, would get the same answer.
                again = [
                    {"role": "assistant", "content": text[:_QUOTED]},
                    {"role": "user", "content": ASK_AGAIN},
                ] * bool(text.strip())
        raise JudgeError(f"the judge {self._model} gave no readable verdict in {ASKS} answers; the last: {trouble}")

    def _client(self) -> openai.AsyncOpenAI:
        if self._public_key is None:
            from openai import AsyncOpenAI
        else:
            # Importing it makes every openai client of the process record, so only where that is wanted.
            from langfuse.openai import AsyncOpenAI  # type: ignore[attr-defined]
        return AsyncOpenAI(api_key=self._api_key, base_url=self._base_url, max_retries=_RETRIES, timeout=_TRY_TIMEOUT)

    async def _complete(self, client: openai.AsyncOpenAI, messages: list[dict[str, str]]) -> Any:
        """One answer, in the strictest form the provider takes. Raises openai.OpenAIError."""
        traced: dict[str, Any] = {}
        if self._public_key is not None:
            traced = {"name": self._model, "langfuse_public_key": self._public_key}
        create: Any = client.chat.completions.create
        forms = _forms()
        for number in range(self._form, len(forms)):
            try:
                completion = await create(
                    model=self._model, messages=messages, max_tokens=_MAX_TOKENS, **forms[number], **traced
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                if number == len(forms) - 1:
                    raise  # even of the barest form: it is not the form that is refused
            else:
                self._form = max(self._form, number)
                return completion
        raise AssertionError("the last form answers or raises")

    def _said(self, error: Exception) -> str:
        """An error in one line, without the key."""
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, openai.APIStatusError):
            body = error.body if isinstance(error.body, dict) else {}
            text = f"HTTP {error.status_code}: {body.get('message') or error.message}"
            if error.status_code in (401, 403):
                text += " (check OPENROUTER_API_KEY)"
        elif isinstance(error, openai.APITimeoutError):
            text = f"no answer within {_TRY_TIMEOUT:g} s, in {_RETRIES + 1} tries"
        elif isinstance(error, openai.APIConnectionError):
            text = f"no connection to {self._base_url}, in {_RETRIES + 1} tries"
        line = " ".join(self._redactor.text(text).split())
        return line if len(line) <= _CAUSE else line[: _CAUSE - 1] + "…"


class _Spent:
    """Adds up what the answers for one vote took."""

    def __init__(self) -> None:
        self.cost_usd: float | None = None
        self.usage: Usage | None = None

    def add(self, completion: Any) -> None:
        usage = getattr(completion, "usage", None)
        if usage is None:
            return
        # OpenRouter's own field: https://openrouter.ai/docs/use-cases/usage-accounting
        cost = getattr(usage, "cost", None)
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self.cost_usd = (self.cost_usd or 0.0) + float(cost)
        before = self.usage or Usage()
        details = getattr(usage, "prompt_tokens_details", None)
        cached = getattr(details, "cached_tokens", None) or 0
        self.usage = Usage(
            # prompt_tokens counts what was read from the cache too
            input_tokens=before.input_tokens + max(0, (usage.prompt_tokens or 0) - cached),
            output_tokens=before.output_tokens + (usage.completion_tokens or 0),
            cache_read_tokens=before.cache_read_tokens + cached,
        )


def _text(completion: Any) -> str:
    """The answer's text; "" where there is none. OpenRouter sends some failures as an answer without choices."""
    choices = getattr(completion, "choices", None)
    if not choices:
        return ""
    return getattr(choices[0].message, "content", None) or ""


def _trouble(completion: Any, text: str) -> str:
    """What an unreadable answer was."""
    if isinstance(completion, str):
        return f'no chat completion: "{" ".join(completion.split())[:100]}" (check OPENROUTER_BASE_URL)'
    error = getattr(completion, "error", None)
    if isinstance(error, dict):
        return f"an error: {' '.join(str(error.get('message') or error).split())[:_CAUSE]}"
    choices = getattr(completion, "choices", None)
    if choices and choices[0].finish_reason == "length":
        return f"cut off at {_MAX_TOKENS} tokens"
    said = " ".join(text.split())
    return f'"{said[:100]}"' if said else "empty"
