"""The text of a new twogate.toml: from an existing .mcp.json, from how the server is started, or to be filled in.

A .mcp.json often holds tokens and is kept out of git, while twogate.toml is committed: values that may be secrets
become variables (see `evals.init.hiding`).
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
from evals.init.hiding import VARIABLE, Hiding, Variables
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
        raise TwogateError(f"--start: is no command line: {error}") from None
    return _config({name: {"command": command, "args": args}}, "--start")


def config_to_fill_in() -> Config:
    """With nothing but comments: a run says that it describes no server."""
    return Config(_HEAD + _TO_FILL_IN, notes=("twogate.toml: names no server yet; fill it in",))


def _config(servers: Mapping[str, Any], source: str) -> Config:
    problems: list[str] = []
    notes: list[str] = []
    blocks: list[str] = []
    names: set[str] = set()
    variables = Variables(match["name"] for match in VARIABLE.finditer(json.dumps(servers)))
    for original, description in servers.items():
        name = _UNFIT.sub("-", original).strip("-") or "server"
        if not isinstance(description, dict):
            problems.append(f"{source}: {original}: must be an object; mend it")
            continue
        if description.get("disabled") is True:
            notes.append(f"twogate.toml: {name}: is disabled in {source} and left out")
            continue
        if name in names:
            problems.append(
                f"{source}: {original}: has the same name as another server once spaces are gone; rename it"
            )
        names.add(name)
        if name != original:
            notes.append(f"twogate.toml: the server {original!r} is called {name}")
        dropped = [
            key for key in description if key not in _TAKEN and not (key == "disabled" and description[key] is False)
        ]
        if dropped:
            notes.append(f"twogate.toml: {name}: {', '.join(dropped)} of {source} is left out")
        kept = Hiding(name, variables)
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
        notes += [f"twogate.toml: {name}: {note}" for note in kept.notes]
        blocks.append(_block(name, config))
    if problems:
        raise TwogateError(problems)
    if not blocks:
        return Config(_HEAD + _TO_FILL_IN, notes=(*notes, "twogate.toml: names no server yet; fill it in"))
    text = f"{_HEAD}\n" + "\n".join(blocks)
    named = dict.fromkeys(match["name"] for block in blocks for match in VARIABLE.finditer(block))
    return Config(text, tuple(named), tuple(notes))


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


def mcp_file(root: Path) -> Path | None:
    """The repository's .mcp.json, if it has one."""
    path = root / MCP_FILE
    return path if path.is_file() else None
