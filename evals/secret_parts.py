"""What of a server's command line, address, variables and headers must be kept out of all that is shown or written."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from evals.secrecy import is_harmless, is_secret_name, looks_secret

SHOWN = "…"
"""What stands in place of a secret where a command line is shown."""

_FLAG = re.compile(r"--?[A-Za-z][A-Za-z0-9_.-]*")
_FLAG_VALUE = re.compile(r"(?P<name>--?[A-Za-z][A-Za-z0-9_.-]*)=(?P<value>.+)", re.DOTALL)
_HEADER = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_-]*):\s+(?P<value>\S.*)", re.DOTALL)
_SETTING = re.compile(r"(?<![A-Za-z0-9_.])(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,80})=(?P<value>[^&;\s]+)")
_IN_JSON = re.compile(r'"(?P<name>[^"\\]{1,60})"\s*:\s*"(?P<value>(?:[^"\\]|\\.)+)"')
# A header of several, a line of YAML, a part of a connection string: its value may have spaces in it, quoted ones all.
_ENTRY = re.compile(
    r"(?:^|[;,&\n{])[ \t]*[\"']?(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,40}(?: [A-Za-z0-9]{1,20}){0,2})[\"']?"
    r"[ \t]{0,9}(?:=|:(?![/:]))[ \t]*(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^;,&\n}]+)"
)
_STRUCTURED = re.compile(r"[{};\n]|=[^=\s]|:\s|-----BEGIN")
# user:password@tcp(host:port)/name, as Go's drivers take it.
_LOGIN = re.compile(r"(?:^|\s)[^:@/\s]{1,80}:(?P<password>\S+)@(?=[a-z]+\()")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|digest)\s+(?P<rest>\S+)")
# Up to the last @: a password may hold one, although it should not.
_USER_INFO = re.compile(r"(?<=://)(?P<info>[^/?#\s\"'<>]+)(?=@)")
_PIECE = re.compile(r"[^\s/?#&=:@,;\"']+")
# "--max-tokens 100000" speaks of tokens, and is a number like any other.
_MEASURED = re.compile(r"(?i)max|min|limit|timeout|ttl|count|size|length|budget|expir|window")
# What only sounds like a secret.
_UNLIKE = re.compile(r"(?i)author(?!i[sz])|keyboard|keyspace|keyword|monkey|tokeni[sz]er")
_PHRASE_NAME = re.compile(r"(?i)passw|passphrase|token|secret")
_SHORTEST_PHRASE = 12  # characters
_PLAIN_WORD = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)*")
_GLUED = re.compile(r"(?P<flag>-[A-Za-z])(?P<rest>[A-Za-z][A-Za-z0-9_-]*(?:=|:\s).+)", re.DOTALL)


def argument_secrets(arguments: Sequence[str]) -> list[str]:
    """The parts of a command line's words that are secret, or may be: what a name of a secret is given, and tokens."""
    return [one for found in _by_argument(arguments) for one in found]


def shown_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line with `SHOWN` in place of what `argument_secrets` finds in them."""
    shown = []
    for argument, secrets in zip(arguments, _by_argument(arguments), strict=True):
        for secret in sorted(secrets, key=len, reverse=True):
            argument = argument.replace(secret, SHOWN)
        shown.append(argument)
    return tuple(shown)


def address_secrets(url: str) -> list[str]:
    """The user and the password of an address, and the values of its query, as they stand and decoded."""
    parts = urlsplit(url)
    info = parts.netloc.rpartition("@")[0]
    values = [info, *info.split(":", 1), *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    values += [unquote(one) for one in values]
    values += [value for _, value in parse_qsl(parts.query)]
    return [value for value in dict.fromkeys(values) if value]


def value_secrets(values: Iterable[str]) -> list[str]:
    """A variable's or header's values, and what of them may come back alone: after ``Bearer``, as a password, under the
    name of a secret in a value that is JSON or holds several settings.
    """
    found: list[str] = []
    for value in values:
        found += [value, *_after_scheme(value), *inner_secrets(value)]
    return [value for value in dict.fromkeys(found) if value]


def inner_secrets(value: str) -> list[str]:
    """The credentials inside a value: headers as JSON, a connection string, an address with a password."""
    found = [*_passwords(value), *(text for _, text in _named_secrets(value))]
    if not _is_path(value):
        found += [piece[0] for piece in _PIECE.finditer(value) if looks_secret(piece[0])]
    return list(dict.fromkeys(found))


def _passwords(value: str) -> list[str]:
    found = [*_user_info(value), *(match["password"] for match in _LOGIN.finditer(value))]
    return [*found, *map(unquote, found)]


def _named_secrets(value: str) -> list[tuple[str, str]]:
    """What stands in a value under the name of a secret, with the name.

    A word is one only where the name says so: masked, it would be missing from every text.
    """
    found: list[tuple[str, str]] = []
    for name, text in _entries(value):
        if _hides(name, text) and (_PHRASE_NAME.search(name) or not _PLAIN_WORD.fullmatch(text)):
            found += [(name, part) for part in (text, *_after_scheme(text))]
    return list(dict.fromkeys(found))


def _entries(value: str, depth: int = 3) -> Iterator[tuple[str, str]]:
    """Each name in a value, with the text it gives that; of JSON its leaves, under the names that lead to them."""
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        for pattern in (_SETTING, _ENTRY, _IN_JSON):
            for match in pattern.finditer(value):
                yield match["name"], match["value"].strip(" \t\r\"'")
        return
    if isinstance(decoded, int | float):
        return  # the value itself is all there is
    for name, text in _leaves(decoded):
        yield name, text
        if depth and not text.isdigit():
            yield from _entries(text, depth - 1)


def _leaves(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Each text and number in a JSON value, with the names it stands under."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, str(value)
    elif isinstance(value, dict):
        if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
            yield value["name"], value["value"]
        for key, one in value.items():
            yield from _leaves(one, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            yield from ((name or "token", one) for one in argument_secrets(value))
        for one in value:
            yield from _leaves(one, name)


def _after_scheme(value: str) -> list[str]:
    """Of ``Bearer abc`` the token, of ``Basic …`` user and password as well; of two words the second."""
    words = value.split()
    if len(words) != 2 or _STRUCTURED.search(value):
        scheme = _SCHEME.fullmatch(value.strip())
        words = ["", scheme["rest"]] if scheme is not None else [""]
    decoded = _decoded(words[1]) if len(words) == 2 and value[:5].lower() == "basic" else []
    return [*words[1:], *decoded]


def environment_secrets(variables: Mapping[str, str]) -> list[str]:
    """The values that this process's own environment, which a stdio server inherits, has under names of secrets.

    A value that is one plain word is a setting (``DESKTOP_SESSION=gnome``): it would be taken out of every text. A long
    one is a pass phrase where the name says so.
    """

    def is_plain(name: str, value: str) -> bool:
        phrase = len(value) >= _SHORTEST_PHRASE and _PHRASE_NAME.search(name)
        return _PLAIN_WORD.fullmatch(value) is not None and not phrase

    named = value_secrets(
        value for name, value in variables.items() if _hides(name, value) and not is_plain(name, value)
    )
    # Any other may be prose (a commit's message), so that of it only what nobody writes by chance is one.
    inner = [one for value in variables.values() for one in _passwords(value)]
    for value in variables.values():
        inner += [
            text
            for name, text in _named_secrets(value)
            if looks_secret(text)
            or (_PHRASE_NAME.search(name) and not _PLAIN_WORD.fullmatch(text) and not re.search(r"\s", text))
        ]
    return list(dict.fromkeys([*named, *inner]))


def spellings(secrets: Iterable[str]) -> list[str]:
    """Each secret also as it stands in JSON and, where it has several lines, in one."""
    found: list[str] = []
    for one in secrets:
        found += [one, json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1], " ".join(one.split())]
    return list(dict.fromkeys(found))


def without_cut_secret(text: str, secrets: Iterable[str], shortest: int = 4) -> str:
    """A text whose beginning was cut off, without the end of a secret it may begin with."""
    for secret in secrets:
        for length in range(len(secret) - 1, shortest - 1, -1):
            if text.startswith(secret[-length:]):
                return SHOWN + text[length:]
    return text


def _by_argument(arguments: Sequence[str]) -> list[list[str]]:
    return [_in_argument(argument, before) for before, argument in zip(["", *arguments], arguments, strict=False)]


def _in_argument(argument: str, before: str) -> list[str]:
    glued = _GLUED.fullmatch(argument)
    if glued is not None:
        return _in_argument(glued["rest"], glued["flag"])
    flag = _FLAG_VALUE.fullmatch(argument)
    if flag is not None:
        return _in_argument(flag["value"], flag["name"])
    if _FLAG.fullmatch(before) and _hides(before, argument) and not argument.startswith("-"):
        return value_secrets([argument])
    header = _HEADER.fullmatch(argument)
    if header is not None and _hides(header["name"], header["value"]):
        return value_secrets([header["value"]])
    named = [*_SETTING.finditer(argument), *_IN_JSON.finditer(argument)]
    found = [one["value"] for one in named if _hides(one["name"], one["value"])]
    found += _user_info(argument)
    if not _is_path(argument):
        found += [piece[0] for piece in _PIECE.finditer(argument) if looks_secret(piece[0])]
    return list(dict.fromkeys(found))


def _hides(name: str, value: str) -> bool:
    """Whether a value under this name is a secret, as far as can be told."""
    if not is_secret_name(_UNLIKE.sub("", name)) or is_harmless(value, name) or _is_path(value):
        return False
    return not (_MEASURED.search(name) and re.fullmatch(r"\d+(?:\.\d+)?[a-zA-Z]{0,2}", value))


def _user_info(text: str) -> list[str]:
    """Of ``postgres://user:password@host`` the password; of ``https://token@host`` the token."""
    infos = [match["info"] for match in _USER_INFO.finditer(text)]
    return [info.partition(":")[2] or info for info in infos if info != "git"]


def _is_path(text: str) -> bool:
    return os.path.exists(text) if 0 < len(text) < 4096 and "\0" not in text else False  # noqa: PTH110


def _decoded(text: str) -> list[str]:
    try:
        pair = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        return []
    return [pair, pair.partition(":")[2]]
