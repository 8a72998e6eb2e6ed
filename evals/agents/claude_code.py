"""Claude Code through claude-agent-sdk: one isolated session a trial.

Isolation: no settings of the user, no servers but the target's, an empty folder to work in, a configuration folder of
its own (but with a subscription login, whose credentials live in the user's own), and no environment variable that
holds a credential but its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import uuid
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from evals.agents import AgentError
from evals.agents.environment import without_choices
from evals.agents.folding import Folder
from evals.agents.hooks import Hooks, Ran
from evals.agents.processes import MARK, kill_marked
from evals.items import Item
from evals.settings import AGENT_VARIABLES, ANTHROPIC_BASE_URL
from evals.target import Launch, Target
from evals.tool_definitions import fit_name, not_shown
from evals.tool_listing import ToolList, start_slots

DEFAULT_MODEL = "claude-haiku-4-5"
DEFAULT_TOOL_TIMEOUT = 60.0

# One larger message kills the SDK's reader; its own default is 1 MiB.
_MAX_BUFFER = 256 * 1024 * 1024
_POLL = 0.05  # seconds between looks at the servers' status
_CLOSING = 10.0  # seconds a session may take to end
_STDERR_LINES = 5
_SERVERS = "servers.json"

# The built-in tools that Claude Code 2.1 offers in a session of the Agent SDK, some of them only in some settings. An
# expected tool may be one of them; their names are told from tools that do not exist.
BUILTIN_TOOLS = frozenset(
    (
        "Agent AskUserQuestion Bash BashOutput CronCreate CronDelete CronList DesignSync Edit EnterPlanMode "
        "EnterWorktree ExitPlanMode ExitWorktree Glob Grep KillShell ListAgents ListMcpResourcesTool LSP Monitor "
        "MultiEdit NotebookEdit NotebookRead PowerShell PushNotification Read ReadMcpResourceTool RemoteTrigger "
        "ReportFindings ScheduleWakeup SendMessage Skill SlashCommand StructuredOutput Task TaskCreate TaskGet "
        "TaskList TaskOutput TaskStop TaskUpdate TodoWrite ToolSearch WebFetch WebSearch Workflow Write"
    ).split()
)


@dataclass(frozen=True)
class ClaudeCode:
    """How Claude Code is run: which model, against which target, with which credentials."""

    target: Target
    tools: ToolList
    model: str = DEFAULT_MODEL
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Those of `settings.AGENT_VARIABLES` that are set, and ANTHROPIC_BASE_URL."""
    subscription: bool = False
    """Use the local login: no key, and the user's own configuration folder."""
    mcp_tools_only: bool = False
    tool_timeout: float = DEFAULT_TOOL_TIMEOUT
    """Seconds one call of a tool may take."""
    cli_path: Path | None = None
    """Another Claude Code than the bundled one."""
    starting: asyncio.Semaphore = field(default_factory=start_slots, repr=False, compare=False)
    """Sessions that may start at the same time; those that wait for a model are not counted."""

    @asynccontextmanager
    async def session(
        self,
        item: Item,
        *,
        hooks: Hooks,
        permission_mode: Literal["dontAsk", "bypassPermissions"],
        max_turns: int,
    ) -> AsyncGenerator[ClaudeSDKClient, None]:
        """A connected session with every server connected, for one item; ended with the block, whatever happens.

        Raises AgentError when Claude Code or a server does not come up.
        """
        failure = self.tools.failure(self.target, item.metadata.tools)
        if failure is not None:
            raise AgentError(failure)
        mark = uuid.uuid4().hex
        stderr: list[str] = []
        with tempfile.TemporaryDirectory(prefix="twogate-", ignore_cleanup_errors=True) as folder:
            options = self._options(item, Path(folder), mark)
            options.hooks = hooks
            options.permission_mode = permission_mode
            options.max_turns = max_turns
            options.stderr = stderr.append
            client = ClaudeSDKClient(options)
            try:
                async with self.starting:
                    await client.connect()
                    await self._wait_for_servers(client, item)
                # It has been read, and the agent's own shell need not find it.
                (Path(folder) / _SERVERS).unlink()
                yield client
            except AgentError:
                raise
            except Exception as error:
                raise AgentError(f"Claude Code failed: {_one_line(error, stderr)}") from error
            finally:
                try:
                    with suppress(Exception):
                        await asyncio.wait_for(client.disconnect(), _CLOSING)
                    # In a thread: it reads the environment of every process.
                    await asyncio.to_thread(kill_marked, mark)
                except BaseException:
                    # Cancelled while closing, as a second Ctrl-C does: then at once, but nothing is left open.
                    kill_marked(mark)
                    with suppress(BaseException):
                        await asyncio.wait_for(client.disconnect(), _CLOSING)
                    raise

    def folder(self, item: Item, denied: Collection[str] = (), ran: Mapping[str, Ran] | None = None) -> Folder:
        """What takes the messages of a session about an item; denied and ran as in `Folder`."""
        listed = self.tools.of(self.target, item.metadata.tools, under_test=False)
        names = {tool.client_name: tool.name for tool in listed}
        return Folder(item.query, tuple(server.name for server in self.target.servers), denied, ran, names)

    async def servers_gone(self, client: ClaudeSDKClient, item: Item) -> str | None:
        """Which servers are no longer connected, in words; None when all are."""
        status = await client.get_mcp_status()
        by_name = {str(one["name"]): one["status"] for one in status["mcpServers"]}
        gone = [
            launch.server
            for launch in self.target.launches(item.metadata.tools)
            if by_name.get(launch.server) != "connected"
        ]
        return (
            f"the server {', '.join(map(repr, gone))} was gone at the end: it ended during the trial" if gone else None
        )

    def _options(self, item: Item, folder: Path, mark: str) -> ClaudeAgentOptions:
        work, config, temporary = folder / "work", folder / "config", folder / "tmp"
        for one in (work, config, temporary):
            one.mkdir()
        launches = self.target.launches(item.metadata.tools)
        longest = max(launch.connect_timeout for launch in launches)
        environment = {
            **without_choices(os.environ),
            MARK: mark,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # A query with @/path in it would put that file of this machine into the conversation.
            "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
            # What is learned in a trial dies with it, and the folder to keep it in would make the system prompt differ
            # from trial to trial: no provider's prompt cache could serve it (measured: 15,428 characters, not 28,265).
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            # Of a refused request; its own default takes three minutes to give up on a wrong key.
            "CLAUDE_CODE_MAX_RETRIES": "6",
            "TMPDIR": str(temporary),  # Claude Code leaves sockets and logs of its shells there
            # A trial ends when the agent does: no subagent or shell may go on behind its last answer.
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            "MCP_TIMEOUT": _milliseconds(longest),
            "MCP_CONNECT_TIMEOUT_MS": _milliseconds(longest),
            "MCP_TOOL_TIMEOUT": _milliseconds(self.tool_timeout),
        }
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            environment["IS_SANDBOX"] = "1"  # bypassPermissions is refused to root without it
        if not self.subscription:
            environment["CLAUDE_CONFIG_DIR"] = str(config)
        environment.update(self.credentials)
        only_mcp = self.mcp_tools_only or bool(item.metadata.mcp_tools_only)
        # In a file, which nobody else may read: on the command line every user of the machine could see its secrets.
        servers = folder / _SERVERS
        described = {launch.server: _server_config(launch, mark) for launch in launches}
        servers.touch(mode=0o600)
        servers.write_text(json.dumps({"mcpServers": described}), encoding="utf-8")
        return ClaudeAgentOptions(
            model=self.model,
            system_prompt={"type": "preset", "preset": "claude_code"},
            tools=[] if only_mcp else {"type": "preset", "preset": "claude_code"},
            mcp_servers=servers,
            strict_mcp_config=True,
            setting_sources=[],
            cwd=work,
            add_dirs=list(launches[0].roots),  # offered to every server as roots, beside the work folder
            env=environment,
            max_buffer_size=_MAX_BUFFER,
            cli_path=self.cli_path,
            extra_args={"no-session-persistence": None},
        )

    async def _wait_for_servers(self, client: ClaudeSDKClient, item: Item) -> None:
        """Return once every server is connected with the tools it listed before.

        Claude Code itself goes on without a server that failed: the model then lacks its tools for a reason that is
        not the model's. The tools that it is known to leave out are not waited for: no user of it has them.
        """
        launches = self.target.launches(item.metadata.tools)
        deadline = asyncio.get_running_loop().time() + max(launch.connect_timeout for launch in launches) + 5
        while True:
            status = await client.get_mcp_status()
            by_name: dict[str, Any] = {str(one["name"]): one for one in status["mcpServers"]}
            waiting = []
            for launch in launches:
                server = by_name.get(launch.server, {"status": "pending"})
                if server["status"] == "pending":
                    waiting.append(launch.server)
                elif server["status"] != "connected":
                    detail = f": {server['error']}" if server.get("error") else ""
                    if "timed out" in detail:
                        detail += f" (connect_timeout is {launch.connect_timeout:g} s)"
                    raise AgentError(f"the server {launch.server!r} did not connect ({server['status']}){detail}")
            if not waiting:
                break
            if asyncio.get_running_loop().time() > deadline:
                raise AgentError(
                    f"the server {', '.join(map(repr, waiting))} did not connect in time (connect_timeout)"
                )
            await asyncio.sleep(_POLL)
        for launch in launches:
            there = {str(tool["name"]) for tool in by_name[launch.server].get("tools", [])}
            shown = [tool for tool in self.tools.by_launch[launch] if not_shown(tool) is None]
            # Of two tools that it gives one name, Claude Code has one.
            names = {fit_name(name) for name in there}
            if missing := [tool.name for tool in shown if fit_name(tool.name) not in names]:
                raise AgentError(
                    f"the server {launch.server!r} connected without its tools {', '.join(missing)}: it no longer "
                    "lists them, or Claude Code does not take their input schemas"
                )


def _server_config(launch: Launch, mark: str) -> Any:
    # alwaysLoad keeps the tools under test in front of the model; without it they are deferred behind ToolSearch.
    # Its own limit; shorter ones than a second are not taken.
    limit = {} if launch.tool_timeout is None else {"timeout": max(1000, round(launch.tool_timeout * 1000))}
    if launch.transport == "stdio":
        return {
            **limit,
            "type": "stdio",
            "command": launch.command,
            "args": list(launch.args),
            # Claude Code hands its own environment on: the key to the model is not for the server under test.
            "env": {**dict.fromkeys((*AGENT_VARIABLES, ANTHROPIC_BASE_URL), ""), **dict(launch.env), MARK: mark},
            "alwaysLoad": True,
        }
    return {
        **limit,
        "type": launch.transport,
        "url": launch.url,
        "headers": dict(launch.headers),
        "alwaysLoad": True,
    }


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


def _one_line(error: Exception, stderr: list[str]) -> str:
    said = " | ".join(line.strip() for line in stderr[-_STDERR_LINES:] if line.strip())
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{text} (it said: {said})" if said else text
