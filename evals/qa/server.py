"""The server under test as the command line names it: over stdio, SSE or streamable HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from evals.connections import CUT, LAST_WORDS
from evals.errors import TwogateError
from evals.redact import Redactor
from evals.secrecy import is_secret_name, is_setting, looks_secret
from evals.secret_parts import (
    SHOWN,
    address_secrets,
    argument_secrets,
    environment_secrets,
    shown_arguments,
    spellings,
    value_secrets,
    without_cut_secret,
)
from evals.target import Launch, Target, Transport, load_target
from evals.tool_listing import Tool, list_tools

SERVER_NAME = "server"
_LONG_WORD = 20
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2: token


@dataclass(frozen=True)
class ServerOptions:
    """One server, or nothing: then the target's file says which."""

    transport: Transport | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def mistakes(self, target: Path | None) -> list[str]:
        """What does not go together, one line each."""
        problems = []
        transport = self.transport or ("http" if self.url is not None else "stdio")
        named = self.command is not None or self.url is not None
        if target is not None and (named or self.transport or self.args or self.env or self.headers):
            problems.append(
                "--target names the servers itself; leave out --transport, --command, --url and what is theirs"
            )
        elif self.command is not None and self.url is not None:
            problems.append("--command and --url are two servers; give one")
        elif transport == "stdio":
            if self.url is not None:
                problems.append("--url does not go with --transport stdio; use -t http or -t sse")
            elif self.command is None and (self.transport or self.args or self.env):
                problems.append("--transport stdio, --args and --env need --command")
            if self.headers:
                problems.append("--header goes with --url only")
        else:
            if self.url is None:
                problems.append(f"--transport {transport} needs --url")
            if self.command is not None or self.args or self.env:
                problems.append(f"--command, --args and --env go with --transport stdio, not {transport}")
        if self.url is not None and not re.match(r"https?://[^/]", self.url):
            problems.append(f"--url {without_secrets(self.url)!r} must start with http:// or https:// and name a host")
        return problems

    def launch(self) -> Launch | None:
        """How to start or reach the server; None when the options name none."""
        if self.url is not None:
            return Launch(
                server=SERVER_NAME,
                transport="sse" if self.transport == "sse" else "http",
                url=self.url,
                headers=self.headers,
                label=without_secrets(self.url),
            )
        if self.command is None:
            return None
        return Launch(
            server=SERVER_NAME,
            transport="stdio",
            command=self.command,
            args=self.args,
            env=self.env,
            label=" ".join((self.command, *shown_arguments(self.args))),
        )

    def secret_values(self) -> list[str]:
        """The values of all variables and headers but plain settings, and the secrets of arguments and address."""
        given = (*self.env, *self.headers)
        values = value_secrets(value for name, value in given if is_secret_name(name) or not is_setting(value))
        values += argument_secrets((self.command or "", *self.args))
        if self.url is not None:
            values += address_secrets(self.url)
        return spellings(values)


@dataclass(frozen=True)
class Servers:
    """The servers a question is put to."""

    launches: tuple[Launch, ...]
    description: str
    secrets: tuple[str, ...] = field(default=(), repr=False)


def find_servers(options: ServerOptions, root: Path, variables: Mapping[str, str], target: Path | None) -> Servers:
    """The server of the options, else those of the target's file. Raises TwogateError when there is none."""
    launch = options.launch()
    if launch is not None:
        secrets = [*options.secret_values(), *spellings(environment_secrets(variables))]
        return Servers((launch,), f"{launch.label} ({launch.transport})", tuple(secrets))
    try:
        found: Target = load_target(root, variables, target)
    except TwogateError as error:
        if target is not None or len(error.lines) > 1:
            raise
        hint = "or name a server: -t stdio -c python -a my_server.py, or -t http -u URL"
        raise TwogateError(f"{error.lines[0]}; {hint}") from None
    secrets = [one for server in found.servers for one in server.secret_values()]
    secrets += spellings(environment_secrets(variables))
    return Servers(found.launches(), found.describe(), tuple(secrets))


async def list_servers_tools(servers: Servers, redactor: Redactor) -> tuple[Tool, ...]:
    """Every tool, before anything is spent. Raises TwogateError with every server that does not connect.

    What such a server said last is told, without the secrets it was given.
    """
    tools: list[Tool] = []
    problems: list[str] = []
    for launch in servers.launches:
        try:
            tools += await list_tools(launch)
        except TwogateError as error:
            for line in error.lines:
                said, cut, words = line.partition(LAST_WORDS + CUT)
                # A secret of several words may end where its words begin.
                problems.append(said + cut + without_cut_secret(words, servers.secrets))
    if not problems and not tools:
        problems.append(f"the target ({servers.description}) lists no tools")
    if problems:
        raise TwogateError(map(redactor.text, problems))
    return tuple(tools)


def parse_pair(text: str, kind: Literal["variable", "header"]) -> tuple[str, str]:
    """``KEY=VALUE`` or ``Key: Value``. Raises ValueError with what is wrong."""
    separator, form = ("=", "KEY=VALUE") if kind == "variable" else (":", "'Key: Value'")
    name, found, value = text.partition(separator)
    name = name.strip()
    pattern = _VARIABLE_NAME if kind == "variable" else _HEADER_NAME
    # What has no name may be a secret whose name was forgotten.
    shown = name if found else _beginning(text)
    if not found or not name:
        raise ValueError(f"{shown!r} is no {kind}; write {form}")
    if not pattern.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a {kind}; write {form}")
    if kind == "header":
        value = value.strip()
        if not value:
            raise ValueError(f"the header {name!r} has no value; write {form}")
        if any(char in value for char in "\r\n\0") or not value.isascii():
            raise ValueError(f"the value of the header {name!r} must be one line of ASCII text")
    elif "\0" in value:
        raise ValueError(f"the value of the variable {name!r} holds a null character")
    return name, value


def _beginning(text: str) -> str:
    word = text.split(maxsplit=1)[0] if text.strip() else text
    shown = word if len(word) < _LONG_WORD and not looks_secret(word) else word[:3]
    return shown if shown == text else f"{shown}…"


def without_secrets(url: str) -> str:
    """An address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def shown_command(arguments: Sequence[str], options: ServerOptions) -> tuple[str, ...]:
    """A command line for the record: the values of variables and headers are left out, whatever their names, and so
    are the secrets of the server's arguments and address.
    """
    endings = {f"{name}={value}": f"{name}={SHOWN}" for name, value in options.env if value}
    endings |= {value: SHOWN for _, value in options.headers}
    endings |= {
        word: shown for word, shown in zip(options.args, shown_arguments(options.args), strict=True) if word != shown
    }
    if options.url is not None and (address := without_secrets(options.url)) != options.url:
        endings[options.url] = f"{address}{SHOWN}"
    longest_first = sorted(endings, key=len, reverse=True)

    def show(argument: str) -> str:
        # By itself, or after "-e=", "-H Name:", "-a".
        ending = next((one for one in longest_first if argument.rstrip().endswith(one)), None)
        return argument if ending is None else argument.rstrip().removesuffix(ending) + endings[ending]

    return tuple(map(show, arguments))
