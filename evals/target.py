"""The target: how to launch or reach the servers an agent is given, from ``twogate.toml`` or a ``.mcp.json``.

Every attached server that is not marked `auxiliary` is under test.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evals.errors import TwogateError
from evals.redact import Redactor
from evals.secrecy import is_secret_name, is_setting
from evals.secret_parts import argument_secrets, environment_secrets, inner_secrets, spellings, value_secrets
from evals.settings import Settings

CONFIG_FILE = "twogate.toml"
MCP_FILE = ".mcp.json"
PYTHON_VARIABLE = "TWOGATE_PYTHON"
"""``${TWOGATE_PYTHON}`` stands for the interpreter Twogate itself runs on."""

DEFAULT_CONNECT_TIMEOUT = 30.0
DEFAULT_FAIL_MESSAGE = (
    "[internal-error] The service could not complete the request. Trying the same call again will not help. "
    "If this is unexpected, report the problem to the service's support with the name of the tool and the time."
)
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_PASSWORD = re.compile(r"://[^/\s@:]*:(?P<password>[^/\s@]+)@")
_NAMED_VALUE = re.compile(r"(?P<name>[\w-]+)=(?P<value>[^&#\s]+)")  # of an address
_NAME = re.compile(r"[A-Za-z0-9_-]+")

Transport = Literal["stdio", "http", "sse"]


class ServerConfig(BaseModel):
    """One server as the configuration file describes it; texts may hold ``${VAR}`` or ``${VAR:-default}``."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    command: Annotated[str, Field(min_length=1)] | None = None
    args: Annotated[tuple[str, ...], Field(strict=False)] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    """stdio: the folder to start in, relative to the configuration file (its own folder by default)."""
    url: Annotated[str, Field(pattern=r"^(https?://|\$\{)")] | None = None
    transport: Transport | None = Field(default=None, validation_alias="type")
    headers: dict[str, str] = {}
    tools_arg: Annotated[str, Field(pattern=r"\{tools\}")] | None = None
    """How an item's `tools` reach the server: an argument (stdio) or a query parameter (URL) with ``{tools}`` in it."""
    roots: Annotated[tuple[Annotated[str, Field(pattern=r"^[^\x00]+$")], ...], Field(strict=False)] = ()
    """Folders the client offers to servers that ask which they may use, relative to the configuration file. It offers
    those of all servers to each."""
    auxiliary: bool = False
    """Attached, but not under test."""
    connect_timeout: Annotated[float, Field(gt=0, strict=False)] = DEFAULT_CONNECT_TIMEOUT
    """Seconds the server may take to connect."""
    tool_timeout: Annotated[float, Field(gt=0, strict=False)] | None = None
    """Seconds one tool call may take; the run's --tool-timeout when absent."""
    fail_message: Annotated[str, Field(min_length=1)] = DEFAULT_FAIL_MESSAGE
    """What a call of an item's `failTools` is answered with: written to read like this server's own failure."""

    @model_validator(mode="before")
    @classmethod
    def _either_name(cls, data: Any) -> Any:
        """`transport` is our word for what `.mcp.json` calls `type`; both are taken."""
        if isinstance(data, dict) and "transport" in data:
            data = dict(data)
            data["type"] = data.pop("transport")
        if isinstance(data, dict) and data.get("type") == "streamable-http":
            data = {**data, "type": "http"}
        return data

    @model_validator(mode="after")
    def _command_or_url(self) -> ServerConfig:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either a command (stdio) or a url (http, sse), not both and not neither")
        if self.command is not None and (self.headers or self.transport in ("http", "sse")):
            raise ValueError("has a command, so headers and an http or sse transport do not apply; remove them")
        if self.url is not None and (self.args or self.env or self.cwd is not None or self.transport == "stdio"):
            raise ValueError("has a url, so args, env, cwd and a stdio transport do not apply; remove them")
        return self


class CoverageConfig(BaseModel):
    """``[coverage.<tool>]``: how the tool's parameters are grouped in the coverage matrix."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    groups: dict[str, Annotated[tuple[str, ...], Field(strict=False, min_length=1)]] = {}
    """A group's name to its parameters; one case for the group is enough for all of them."""


@dataclass(frozen=True)
class Launch:
    """One way to start or reach a server, ready to use: variables filled in, an item's tools applied.

    Two launches that are equal start the same server.
    """

    server: str
    transport: Transport
    command: str = field(default="", repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    connect_timeout: float = DEFAULT_CONNECT_TIMEOUT
    tool_timeout: float | None = None
    roots: tuple[str, ...] = ()

    label: str = field(default="", compare=False)
    """The command line or the address as configured, its variables not filled in: fit to be shown."""


@dataclass(frozen=True)
class Server:
    """A configured server with the folder and the variables its launch needs."""

    name: str
    config: ServerConfig
    folder: Path
    variables: Mapping[str, str] = field(repr=False)
    offered: tuple[str, ...] = ()
    """The roots of all servers of the target: a client has the same for each."""

    @property
    def under_test(self) -> bool:
        return not self.config.auxiliary

    def launch(self, tools: Sequence[str] | None = None) -> Launch:
        """How to start or reach it, for an item that asks for these families of tools."""
        config = self.config
        extra = config.tools_arg.replace("{tools}", ",".join(tools)) if tools and config.tools_arg else None
        fill = self._fill
        if config.url is not None:
            url = fill(config.url)
            if extra is not None:
                url += ("&" if "?" in url else "?") + extra.lstrip("?&")
            return Launch(
                server=self.name,
                transport="sse" if config.transport == "sse" else "http",
                url=url,
                label=self._shown(config.url),
                headers=tuple((key, fill(value)) for key, value in config.headers.items()),
                connect_timeout=config.connect_timeout,
                tool_timeout=config.tool_timeout,
                roots=self.offered,
            )
        assert config.command is not None
        arguments = [fill(argument) for argument in config.args]
        if extra is not None:
            arguments.append(fill(extra))
        # Claude Code starts servers in its own (empty) folder and has no setting for another: the shell changes it.
        folder = str((self.folder / fill(config.cwd or ".")).resolve())
        return Launch(
            server=self.name,
            transport="stdio",
            command="/bin/sh",
            args=("-c", 'cd "$1" && shift && exec "$@"', "sh", folder, fill(config.command), *arguments),
            env=tuple((key, fill(value)) for key, value in config.env.items()),
            label=self._shown(" ".join((config.command, *config.args))),
            connect_timeout=config.connect_timeout,
            tool_timeout=config.tool_timeout,
            roots=self.offered,
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders of its own `roots`."""
        return tuple(str((self.folder / Path(self._fill(root)).expanduser()).resolve()) for root in self.config.roots)

    def unset_variables(self) -> list[str]:
        """The variables its texts name that are not set and have no default."""
        config = self.config
        texts = [config.command or "", *config.args, *config.env.values(), config.cwd or "", config.url or ""]
        texts += [*config.headers.values(), config.tools_arg or "", *config.roots]
        names = [match for text in texts for match in _VARIABLE.finditer(text)]
        return list(
            dict.fromkeys(
                match["name"] for match in names if match["default"] is None and match["name"] not in self.variables
            )
        )

    def _shown(self, text: str) -> str:
        return Redactor(self.secret_values()).text(text)

    def _fill(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: self.variables.get(match["name"], match["default"] or ""), text)

    def secret_values(self) -> list[str]:
        """What must be kept out of everything written down.

        That is what its environment and headers get from variables, unless it can be nothing but a setting, and what
        stands there, in an argument or in the address under a name that speaks of a secret, written out or by a
        variable; and what of these may come back alone (`value_secrets`).
        """
        entries = [*self.config.env.items(), *self.config.headers.items()]
        names = {match["name"] for _, text in entries for match in _VARIABLE.finditer(text)} - {PYTHON_VARIABLE}
        values = value_secrets(
            value
            for name in names
            if (value := self.variables.get(name)) and (is_secret_name(name) or not is_setting(value))
        )
        for name, text in entries:
            filled = self._fill(text)
            values += value_secrets([filled]) if is_secret_name(name) else inner_secrets(filled)
        plain = [self.config.command or "", *self.config.args, self.config.url or ""]
        used = {match["name"] for text in plain for match in _VARIABLE.finditer(text)}
        values += [self.variables[name] for name in used if is_secret_name(name) and name in self.variables]
        values += argument_secrets([self._fill(text) for text in plain[:-1]])
        address = self._fill(plain[-1])
        values += [match["value"] for match in _NAMED_VALUE.finditer(address) if is_secret_name(match["name"])]
        filled_texts = map(self._fill, [*plain, *(text for _, text in entries)])
        values += [match["password"] for text in filled_texts for match in _PASSWORD.finditer(text)]
        return [value for value in dict.fromkeys(values) if value]


@dataclass(frozen=True)
class Target:
    """Every server an agent is given."""

    source: Path
    servers: tuple[Server, ...]
    coverage: Mapping[str, CoverageConfig] = field(default_factory=dict)
    """By tool."""

    @property
    def under_test(self) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.under_test)

    @property
    def takes_tools(self) -> bool:
        """True when an item's `tools` can reach a server."""
        return any(server.config.tools_arg for server in self.servers)

    def launches(self, tools: Sequence[str] | None = None) -> tuple[Launch, ...]:
        """How to start all of them for an item with these families of tools."""
        return tuple(server.launch(tools) for server in self.servers)

    def secret_values(self) -> list[str]:
        """What its servers get from variables by environment and headers."""
        return [value for server in self.servers for value in server.secret_values()]

    def redactor(self, settings: Settings) -> Redactor:
        """Keeps secrets out of what is written down: the settings', the servers', and those of the environment that
        stdio servers inherit.
        """
        inherited = environment_secrets(settings.variables)
        return Redactor(spellings([*settings.secrets, *self.secret_values(), *inherited]))

    def describe(self) -> str:
        """The names of the servers under test."""
        return ", ".join(server.name for server in self.under_test)


def load_target(
    root: Path, variables: Mapping[str, str], path: Path | None = None, *, only: str | None = None
) -> Target:
    """The target of a configuration file: the one given, else ``twogate.toml`` or ``.mcp.json`` at the root.

    only: the one server that will be started, so that the others' variables and folders need not be there.

    Raises TwogateError with every problem of the file at once.
    """
    if path is None:
        path = next((root / name for name in (CONFIG_FILE, MCP_FILE) if (root / name).is_file()), None)
        if path is None:
            raise TwogateError(
                f"there is no {CONFIG_FILE} and no {MCP_FILE} in {root}; add one, or name it by --target"
            )
    elif not path.is_file():
        raise TwogateError(f"--target {path}: there is no such file")
    raw = _read(path)
    key = "mcpServers" if path.suffix == ".json" else "servers"
    described = raw.get(key)
    if not isinstance(described, dict) or not described:
        table = '"mcpServers"' if key == "mcpServers" else "[servers.<name>]"
        raise TwogateError(f"{path.name}: describes no server; add {table}")
    variables = {PYTHON_VARIABLE: sys.executable, **variables}
    problems: list[str] = []
    coverage: dict[str, CoverageConfig] = {}
    if key == "servers":
        problems += [
            f"{path.name}: {one}: is not a known table; use [servers.<name>] or [coverage.<tool>]"
            for one in raw
            if one not in ("servers", "coverage")
        ]
        coverage, mistakes = _coverage(raw.get("coverage", {}), path)
        problems += mistakes
    servers: list[Server] = []
    for name, description in described.items():
        if not _NAME.fullmatch(name):
            problems.append(f"{path.name}: {key}.{name}: a server's name has letters, digits, _ and - only; rename it")
            continue
        try:
            if key == "mcpServers":
                if isinstance(description, dict) and description.pop("disabled", False) is True:
                    continue
                description = _of_mcp_file(description)
            config = ServerConfig.model_validate(description)
        except ValidationError as error:
            problems += [f"{path.name}: {key}.{name}{_where(one)}: {_what(one)}" for one in error.errors()]
            continue
        server = Server(name=name, config=config, folder=path.parent.resolve(), variables=variables)
        servers.append(server)
        if only not in (None, name):
            continue
        problems += [
            f"{path.name}: {key}.{name}: the variable {one} is not set; set it, or write ${{{one}:-default}}"
            for one in server.unset_variables()
        ]
        problems += [
            f"{path.name}: {key}.{name}.roots: there is no folder {root}; make it, or name another"
            for root in server.roots
            if not Path(root).is_dir()
        ]
    if not problems and not any(server.under_test for server in servers):
        problems.append(f"{path.name}: every server is auxiliary; at least one must be under test")
    if problems:
        raise TwogateError(problems)
    offered = tuple(dict.fromkeys(root for server in servers if only in (None, server.name) for root in server.roots))
    servers = [replace(server, offered=offered) for server in servers]
    return Target(source=path, servers=tuple(servers), coverage=coverage)


# What Claude Code and other clients of a .mcp.json keep there for themselves.
_CLIENTS_OWN = frozenset(
    "alwaysLoad alwaysAllow autoApprove autoStart clientSettings connectionTimeout description disabledTools "
    "displayName gallery icon name note oauth restart timeout title trust version".split()
)


def _of_mcp_file(description: Any) -> Any:
    """A server of a standard .mcp.json without what is only for the client that the file was written for.

    Its `timeout`, the milliseconds a call may take, is our `tool_timeout`.
    """
    if not isinstance(description, dict):
        return description
    taken = {key: value for key, value in description.items() if key not in _CLIENTS_OWN}
    timeout = description.get("timeout")
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0:
        taken.setdefault("tool_timeout", timeout / 1000)
    return taken


def _coverage(described: Any, path: Path) -> tuple[dict[str, CoverageConfig], list[str]]:
    if not isinstance(described, dict):
        return {}, [f"{path.name}: coverage: must be tables; use [coverage.<tool>]"]
    found: dict[str, CoverageConfig] = {}
    problems: list[str] = []
    for tool, description in described.items():
        try:
            found[tool] = CoverageConfig.model_validate(description)
        except ValidationError as error:
            problems += [
                f"{path.name}: coverage.{tool}{_where(one)}: {_what(one, CoverageConfig)}" for one in error.errors()
            ]
    return found, problems


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        raw = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise TwogateError(f"{path.name}: cannot be read: {error}") from None
    if not isinstance(raw, dict):
        raise TwogateError(f"{path.name}: must be an object with mcpServers")
    return raw


def _where(error: Any) -> str:
    return "".join(f".{part}" for part in error["loc"])


def _what(error: Any, model: type[BaseModel] = ServerConfig) -> str:
    if error["type"] == "extra_forbidden":
        return f"is not a known key; use {', '.join(model.model_fields)}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{message[0].lower()}{message[1:]}" + (f" (is {error['input']!r})" if error["loc"] else "")
