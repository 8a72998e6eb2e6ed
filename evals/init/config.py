"""The text of a new twogate.toml: from an existing .mcp.json, from how the server is started, or to be filled in.

A .mcp.json often holds tokens and is kept out of git, while twogate.toml is committed: values that look like secrets
become variables.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evals.errors import TwogateError
from evals.target import MCP_FILE, ServerConfig

_HEAD = """\
# The target: the servers an agent is given. Every server that is not marked `auxiliary = true` is under test.
# Texts may hold ${VAR} or ${VAR:-default}: never write a secret here. Stdio servers start in this file's folder.
"""
_TO_FILL_IN = """
# Say how your server is started, or where it is reached, and take the comment signs away:
#
# [servers.my-server]
# command = "node"
# args = ["dist/index.js"]
# env = { API_TOKEN = "${API_TOKEN}" }
#
# [servers.my-server]
# url = "https://mcp.example.com/mcp"
# headers = { Authorization = "Bearer ${API_TOKEN}" }
"""
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")
_SECRET_NAME = re.compile(r"token|key|secret|passw|credential|auth|\bpat\b|cookie|signature", re.IGNORECASE)
# --token=abc, ?api_key=abc
_NAMED_VALUE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)=(?P<value>[^&\s]+)")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
# The keys of .mcp.json that mean the same in twogate.toml.
_TAKEN = ("command", "args", "env", "cwd", "url", "type", "headers")


@dataclass(frozen=True)
class Config:
    """The text, the variables it names, and what is worth saying about it."""

    text: str
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def config_from_mcp_file(path: Path) -> Config:
    """From a ``.mcp.json``. Raises TwogateError with every problem of the file."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise TwogateError(f"{path.name}: cannot be read: {error}") from None
    servers = raw.get("mcpServers") if isinstance(raw, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise TwogateError(f'{path.name}: describes no server; add "mcpServers", or move it away and run init again')
    return _config(servers, path.name)


def config_from_start(name: str, start: str) -> Config:
    """From a command line, or an address. Raises TwogateError when it is neither."""
    if start.startswith(("http://", "https://")):
        return _config({name: {"url": start}}, "--start")
    try:
        command, *args = shlex.split(start)
    except ValueError as error:
        raise TwogateError(f"--start {start!r}: is no command line: {error}") from None
    return _config({name: {"command": command, "args": args}}, "--start")


def config_to_fill_in() -> Config:
    """With nothing but comments: a run says that it describes no server."""
    return Config(_HEAD + _TO_FILL_IN, notes=("twogate.toml: names no server yet; fill it in",))


def _config(servers: Mapping[str, Any], source: str) -> Config:
    problems: list[str] = []
    notes: list[str] = []
    blocks: list[str] = []
    names: set[str] = set()
    for original, description in servers.items():
        name = _UNFIT.sub("-", original).strip("-") or "server"
        if not isinstance(description, dict):
            problems.append(f"{source}: {original}: must be an object; mend it")
            continue
        if name in names:
            problems.append(
                f"{source}: {original}: has the same name as another server once spaces are gone; rename it"
            )
        names.add(name)
        if name != original:
            notes.append(f"twogate.toml: the server {original!r} is called {name}")
        dropped = [key for key in description if key not in _TAKEN]
        if dropped:
            notes.append(f"twogate.toml: {name}: {', '.join(dropped)} of {source} is left out")
        kept = _Hiding(name)
        taken = kept.description({key: value for key, value in description.items() if key in _TAKEN})
        try:
            config = ServerConfig.model_validate(taken)
        except ValidationError as error:
            problems += [
                f"{source}: {original}{''.join(f'.{part}' for part in one['loc'])}: "
                f"{one['msg'].removeprefix('Value error, ')}"
                for one in error.errors(include_url=False)
            ]
            continue
        notes += [f"twogate.toml: {name}: {what} is taken from ${{{variable}}}" for what, variable in kept.hidden]
        blocks.append(_block(name, config))
    if problems:
        raise TwogateError(problems)
    text = f"{_HEAD}\n" + "\n".join(blocks)
    variables = dict.fromkeys(match["name"] for block in blocks for match in _VARIABLE.finditer(block))
    return Config(text, tuple(variables), tuple(notes))


def _block(name: str, config: ServerConfig) -> str:
    lines = [f"[servers.{name}]"]
    if config.command is not None:
        lines.append(f"command = {_toml(config.command)}")
        if config.args:
            lines.append(f"args = [{', '.join(map(_toml, config.args))}]")
        if config.env:
            lines.append(f"env = {_table(config.env)}")
        if config.cwd is not None:
            lines.append(f"cwd = {_toml(config.cwd)}")
    else:
        assert config.url is not None
        lines.append(f"url = {_toml(config.url)}")
        if config.transport == "sse":
            lines.append('transport = "sse"')
        if config.headers:
            lines.append(f"headers = {_table(config.headers)}")
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    """A TOML basic string: JSON's, whose escapes TOML shares, with the one control character JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(values: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{_toml(key)} = {_toml(value)}" for key, value in values.items()) + " }"


class _Hiding:
    """Puts variables where values look like secrets, and remembers which."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.hidden: list[tuple[str, str]] = []

    def description(self, raw: dict[str, Any]) -> dict[str, Any]:
        """A copy of a server's description without secrets; what has another shape than expected stays as it is."""
        taken = dict(raw)
        if isinstance(taken.get("env"), dict):
            taken["env"] = {key: self._env(key, value) for key, value in taken["env"].items()}
        if isinstance(taken.get("headers"), dict):
            taken["headers"] = {key: self._header(key, value) for key, value in taken["headers"].items()}
        if isinstance(taken.get("args"), list):
            taken["args"] = self._args(taken["args"])
        if isinstance(taken.get("url"), str):
            taken["url"] = self._named(_USER_INFO.sub(lambda _: self._put("url", "USER_INFO"), taken["url"]))
        return taken

    def _env(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and value and _SECRET_NAME.search(key) and not _VARIABLE.search(value):
            return self._put(f"env.{key}", key, own_name=True)
        return value

    def _header(self, key: str, value: Any) -> Any:
        if not isinstance(value, str) or _VARIABLE.search(value) or not _SECRET_NAME.search(key):
            return value
        scheme, blank, rest = value.partition(" ")
        variable = self._put(f"headers.{key}", "TOKEN" if key.lower() == "authorization" else key)
        return f"{scheme} {variable}" if blank and rest else variable

    def _args(self, args: list[Any]) -> list[Any]:
        taken: list[Any] = []
        for place, value in enumerate(args):
            before = args[place - 1] if place else ""
            if not isinstance(value, str):
                taken.append(value)
            elif (
                isinstance(before, str)
                and before.startswith("-")
                and "=" not in before
                and _SECRET_NAME.search(before)
                and not value.startswith("-")
                and not _VARIABLE.search(value)
            ):
                taken.append(self._put(f"args[{place}]", before))
            else:
                taken.append(self._named(value))
        return taken

    def _named(self, text: str) -> str:
        """With the values of ``name=value`` replaced where the name says that they are secret."""

        def replace(match: re.Match[str]) -> str:
            if not _SECRET_NAME.search(match["name"]) or _VARIABLE.search(match["value"]):
                return match[0]
            return f"{match['name']}={self._put(match['name'], match['name'])}"

        return _NAMED_VALUE.sub(replace, text)

    def _put(self, what: str, name: str, *, own_name: bool = False) -> str:
        variable = _UNFIT.sub("_", name if own_name else f"{self._server}_{name.strip('-')}").replace("-", "_")
        variable = variable if own_name else variable.upper()
        self.hidden.append((what, variable))
        return f"${{{variable}}}"


def mcp_file(root: Path) -> Path | None:
    """The repository's .mcp.json, if it has one."""
    path = root / MCP_FILE
    return path if path.is_file() else None
