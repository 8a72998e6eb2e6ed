"""The judge on the Claude Agent SDK: one Claude Code session a judgement, with no tools but the one it answers by.

The session is as isolated as an agent's (see `evals.agents.claude_code`), and one thing more: Claude Code reads a
prompt for what a person at its keyboard might mean. An `@path` in it attaches that file, and a keyword changes the
effort. The texts to judge hold such things by accident or on purpose, so both are switched off: an answer of the agent
under test must not bring a file of this machine into a judge's prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, TextBlock

from evals.agents.environment import without_choices
from evals.agents.processes import MARK, kill_marked
from evals.conversation import Conversation, Usage
from evals.judges import ASKS, JudgeError, Judgement, Vote
from evals.judges.single import judge_by
from evals.judges.tracing import Observed
from evals.redact import Redactor
from evals.scoring.judge import JudgeAnswer, JudgeRequest, read_verdict, verdict_schema
from evals.settings import AGENT_VARIABLES, ANTHROPIC_BASE_URL

_MAX_BUFFER = 64 * 1024 * 1024  # bytes of one message; the prompt comes back in it
_CLOSING = 10.0  # seconds a session may take to end
_STDERR_LINES = 5
_CAUSE = 300  # characters of a message in a cause


@dataclass(frozen=True)
class _Session:
    """What one session came to."""

    answer: JudgeAnswer | None
    trouble: str
    asked: int
    """Answers the model was asked for: Claude Code itself asks again when one does not fit the schema."""
    usage: Usage | None
    cost_usd: float | None


class ClaudeJudge:
    """One Claude model. Each judgement starts a Claude Code of its own, which costs about 2 s of CPU."""

    def __init__(
        self,
        model: str,
        credentials: Mapping[str, str],
        *,
        subscription: bool,
        langfuse_public_key: str | None,
        timeout: float,
        cli_path: Path | None,
    ) -> None:
        self._model = model
        self._credentials = dict(credentials)
        self._subscription = subscription
        self._public_key = langfuse_public_key
        self._timeout = timeout
        self._cli_path = cli_path
        self._redactor = Redactor(value for name, value in credentials.items() if name in AGENT_VARIABLES)

    @property
    def models(self) -> tuple[str, ...]:
        return (self._model,)

    async def judge(self, query: str, reference: str, conversation: Conversation) -> Judgement:
        return await judge_by(
            self._model,
            self._vote,
            query,
            reference,
            conversation,
            public_key=self._public_key,
            time_limit=self._timeout,
        )

    async def _vote(self, request: JudgeRequest, observation: Observed) -> Vote:
        sessions: list[_Session] = []
        while (asked := sum(one.asked for one in sessions)) < ASKS:
            session = await self._session(request, observation, ASKS - asked)
            sessions.append(session)
            if session.answer is not None:
                verdict, reason = session.answer.verdict, session.answer.reason
                return Vote(self._model, verdict, reason, _cost(sessions), _usage(sessions))
        raise JudgeError(
            f"the judge {self._model} gave no readable verdict in {asked} answers; the last: {sessions[-1].trouble}"
        )

    async def _session(self, request: JudgeRequest, observation: Observed, asks: int) -> _Session:
        """Ask in a session of its own. Raises JudgeError when Claude Code or the model's API fails."""
        mark = uuid.uuid4().hex
        stderr: list[str] = []
        prompt = [
            {"role": "system", "content": request.instructions},
            {"role": "user", "content": request.material},
        ]
        with (
            tempfile.TemporaryDirectory(prefix="twogate-judge-", ignore_cleanup_errors=True) as folder,
            observation.generation(self._model, prompt) as generation,
        ):
            options = self._options(request, Path(folder), mark, asks)
            options.stderr = stderr.append
            client = ClaudeSDKClient(options)
            turns: dict[str, str] = {}
            result: ResultMessage | None = None
            notice: str | None = None
            try:
                await client.connect()
                await client.query(request.material)
                async for message in client.receive_response():
                    if isinstance(message, ResultMessage):
                        result = message
                    elif isinstance(message, AssistantMessage):
                        said = "".join(block.text for block in message.content if isinstance(block, TextBlock))
                        if message.error is not None:
                            notice = f"{message.error} {said}"
                        else:
                            turn = message.message_id or message.uuid or ""
                            turns[turn] = turns.get(turn, "") + said
            except Exception as error:
                raise self._error(f"{type(error).__name__}: {error}", stderr) from error
            finally:
                with suppress(Exception):
                    await asyncio.wait_for(client.disconnect(), _CLOSING)
                # In a thread: it reads the environment of every process.
                await asyncio.shield(asyncio.to_thread(kill_marked, mark))
            session = self._read(result, notice, turns, stderr)
            if generation is not None:
                generation.update(
                    output=result.structured_output or result.result if result is not None else None,
                    usage_details=_usage_details(session.usage),
                    cost_details=None if session.cost_usd is None else {"total": session.cost_usd},
                )
            return session

    def _read(
        self, result: ResultMessage | None, notice: str | None, turns: Mapping[str, str], stderr: list[str]
    ) -> _Session:
        if result is None:
            raise self._error("Claude Code ended without a result", stderr)
        if result.subtype not in _UNREADABLE and (result.is_error or result.subtype != "success" or notice):
            status = f"HTTP {result.api_error_status}: " if result.api_error_status else ""
            said = notice or "; ".join(result.errors or []) or result.result or result.subtype
            raise self._error(f"{status}{said}", [])
        answer = None
        if isinstance(result.structured_output, dict):
            answer = read_verdict(json.dumps(result.structured_output))
        if answer is None and result.subtype == "success":
            answer = read_verdict(result.result or "")
        said = " ".join((result.result or "; ".join(result.errors or []) or result.subtype).split())
        return _Session(
            answer=answer,
            trouble=f'"{said[:100]}"',
            asked=max(1, len(turns)),
            usage=_reported(result.usage),
            cost_usd=result.total_cost_usd,
        )

    def _error(self, what: str, stderr: list[str]) -> JudgeError:
        said = " | ".join(line.strip() for line in stderr[-_STDERR_LINES:] if line.strip())
        line = " ".join(self._redactor.text(f"{what} (it said: {said})" if said else what).split())
        return JudgeError(f"the judge {self._model} failed: {line if len(line) <= _CAUSE else line[:_CAUSE] + '…'}")

    def _options(self, request: JudgeRequest, folder: Path, mark: str, asks: int) -> ClaudeAgentOptions:
        work, config = folder / "work", folder / "config"
        work.mkdir()
        config.mkdir()
        environment = {
            **without_choices(os.environ),
            MARK: mark,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
            "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
            "CLAUDE_CODE_DISABLE_ULTRATHINK": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
            # Its own 10 tries of a failing API, a refused key included, take 3 minutes.
            "CLAUDE_CODE_MAX_RETRIES": "5",
            # Answers that do not fit the schema, the first one included.
            "MAX_STRUCTURED_OUTPUT_RETRIES": str(asks),
        }
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            environment["IS_SANDBOX"] = "1"
        if not self._subscription:
            environment["CLAUDE_CONFIG_DIR"] = str(config)
            environment |= {name: self._credentials[name] for name in AGENT_VARIABLES if name in self._credentials}
        if base_url := self._credentials.get(ANTHROPIC_BASE_URL):
            environment[ANTHROPIC_BASE_URL] = base_url
        return ClaudeAgentOptions(
            model=self._model,
            system_prompt=request.instructions,
            tools=[],
            mcp_servers={},
            strict_mcp_config=True,
            setting_sources=[],
            output_format={"type": "json_schema", "schema": verdict_schema()},
            cwd=work,
            env=environment,
            max_buffer_size=_MAX_BUFFER,
            cli_path=self._cli_path,
            extra_args={"no-session-persistence": None},
        )


# Ends of a session that say the answer was not a verdict; every other unsuccessful end is a failure of the service.
_UNREADABLE = frozenset({"error_max_structured_output_retries"})


def _reported(usage: dict[str, Any] | None) -> Usage | None:
    if not usage:
        return None
    return Usage(
        input_tokens=usage.get("input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        cache_read_tokens=usage.get("cache_read_input_tokens") or 0,
        cache_write_tokens=usage.get("cache_creation_input_tokens") or 0,
    )


def _usage(sessions: list[_Session]) -> Usage | None:
    known = [one.usage for one in sessions if one.usage is not None]
    if not known:
        return None
    return Usage(**{name: sum(getattr(one, name) for one in known) for name in Usage.model_fields})


def _usage_details(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _cost(sessions: list[_Session]) -> float | None:
    known = [one.cost_usd for one in sessions if one.cost_usd is not None]
    return sum(known) if known else None
