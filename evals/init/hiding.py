"""Variables in place of what may be a secret in a server's description."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from typing import Any

from evals.secrecy import is_harmless, is_secret_name, looks_secret

VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_WHOLE_VARIABLE = re.compile(r"(\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\})")
_UNFIT = re.compile(r"[^A-Za-z0-9_]+")
# The user's part of an address. A password may hold @ and / although it should not, so all to the last @ is taken,
# unless what stands after the colon is a port.
_USER_INFO = re.compile(r"(?<=://)(?:[^/?#\s:@]*:(?!\d{1,5}(?:[/?#]|$))\S*|[^/?#\s]*)(?=@)")
# user:password@host without a scheme; not npm:name@1.2.3, name:tag@sha256:…
_BARE_USER_INFO = re.compile(
    r"(?!(?:npm|jsr|mailto|acct|github|gitlab|workspace|file):)[A-Za-z0-9_.-]+:(?!//)\S+"
    r"(?=@(?!sha\d+:|v?\d+(?:\.\d+){0,2}(?:[-+]|$))[A-Za-z0-9\[])"
)
_NAMED = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)=(?P<value>[^&;\s]+)")
_HEADER = re.compile(r"(?P<head>(?P<name>[A-Za-z][A-Za-z0-9_-]*):\s*)(?P<value>(?!//)\S.*)", re.DOTALL)
_SETTING = re.compile(r"(?P<head>(?P<name>[A-Za-z_][A-Za-z0-9_]*)=)(?P<value>.+)", re.DOTALL)
_SCHEME = re.compile(
    r"(?P<scheme>(?:Bearer|Basic|Token|ApiKey|Api-Key|Digest|Bot|Key)\s+)(?P<rest>.+)", re.I | re.DOTALL
)
_FLAG = re.compile(r"(?P<head>--?[A-Za-z][A-Za-z0-9_.-]*=)(?P<value>.*)", re.DOTALL)
# curl's -HName: value, docker's -eNAME=value
_GLUED = re.compile(r"(?P<flag>-H|-e)(?P<value>(?:[A-Za-z][A-Za-z0-9_-]*:\s*|[A-Z_][A-Z0-9_]*=).+)", re.DOTALL)
# The piece of an address, or of another word, that is judged and replaced by itself.
_PIECE = re.compile(r"sha(?:256|512):[0-9a-f]+|[^/?#&=:@,;]+")
# What may stand beside variables and say nothing.
_BETWEEN = re.compile(r"(?i)(?:(?:Bearer|Basic|Token|ApiKey|Bot)\b)?[\s:/,@]*")
_HEADER_NAME = re.compile(r"(?i)x-[a-z0-9-]+|(?:proxy-)?authorization|api-key|cookie")
_HEADER_FLAGS = ("-H", "--header", "--headers")
_SETTING_FLAGS = ("-e", "--env", "--env-var")
_USER_FLAGS = ("-u", "--user", "--proxy-user")


class Variables:
    """The variables of one configuration: no name stands for two values."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        # what a name that the author uses already stands for is not known here
        self._values: dict[str, str | None] = dict.fromkeys(used)

    def name_for(self, value: str, *wanted: str) -> str:
        """The first of the wanted names that is free or stands for this very value, else one with a number."""
        names = [_fit(name) for name in wanted]
        number = 1
        while True:
            for name in names:
                if name not in self._values or self._values[name] == value:
                    self._values[name] = value
                    return name
            number += 1
            names = [f"{_fit(wanted[-1])}_{number}"]


class Hiding:
    """Puts variables where values may be secrets, and remembers which, for one server."""

    def __init__(self, server: str, variables: Variables) -> None:
        self._server = server
        self._variables = variables
        self.notes: list[str] = []
        """What was replaced, never by what it was."""

    def description(self, raw: dict[str, Any]) -> dict[str, Any]:
        """A copy of a server's description without secrets; what has another shape than expected stays as it is."""
        taken = dict(raw)
        for key, hide in (("env", self._env), ("headers", self._header)):
            if isinstance(taken.get(key), dict):
                taken[key] = {
                    name: hide(f"{key}.{name}", name, value) if isinstance(value, str) else value
                    for name, value in taken[key].items()
                }
        if isinstance(taken.get("args"), list):
            taken["args"] = self._args(taken["args"])
        for key in ("command", "cwd", "url"):
            if isinstance(taken.get(key), str):
                taken[key] = self._text(key, taken[key], key)
        return taken

    def _env(self, what: str, name: str, value: str) -> str:
        value = self._without_defaults(what, value, name)
        return value if _may_be_shown(value, name) else self._put(what, value, name, f"{self._server}_{name}".upper())

    def _header(self, what: str, name: str, value: str) -> str:
        value = self._without_defaults(what, value, name)
        match = _SCHEME.fullmatch(value)
        scheme, rest = (match["scheme"], match["rest"]) if match else ("", value)
        if _may_be_shown(rest, name):
            return value
        return scheme + self._put_own(what, rest, "TOKEN" if name.lower() == "authorization" else name)

    def _args(self, args: list[Any]) -> list[Any]:
        taken: list[Any] = []
        for place, value in enumerate(args):
            before = args[place - 1] if place and isinstance(args[place - 1], str) else ""
            taken.append(self._arg(f"args[{place}]", before, value) if isinstance(value, str) else value)
        return taken

    def _arg(self, what: str, before: str, value: str) -> str:
        """An argument, with the one before it, whose value it may be."""
        glued = _GLUED.fullmatch(value)
        if glued is not None:
            return glued["flag"] + self._arg(what, glued["flag"], glued["value"])
        flag = _FLAG.fullmatch(value)
        if flag is not None:
            return flag["head"] + self._arg(what, flag["head"].rstrip("="), flag["value"])
        name = before if re.fullmatch(r"--?[A-Za-z][A-Za-z0-9_.-]*", before) and not looks_secret(before) else ""
        value = self._without_defaults(what, value, name)
        header = _HEADER.fullmatch(value)
        if header is not None and (
            name in _HEADER_FLAGS
            or (is_secret_name(header["name"]) and header["head"][-1] != ":")
            # auth:latest and token:serve are no headers
            or _HEADER_NAME.fullmatch(header["name"])
        ):
            return header["head"] + self._header(what, header["name"], header["value"])
        setting = _SETTING.fullmatch(value)
        if setting is not None and name in _SETTING_FLAGS:
            return setting["head"] + self._env(what, setting["name"], setting["value"])
        follows_a_secret = (
            (is_secret_name(name) and not value.startswith("-"))
            or (name in _USER_FLAGS and ":" in value)
            or (before.endswith(":") and is_secret_name(before))
            or before in ("Bearer", "Basic")
        )
        if follows_a_secret and not _may_be_shown(value, "secret"):
            return self._put_own(what, value, name or "arg")
        return self._text(what, value, name or "arg")

    def _text(self, what: str, text: str, name: str) -> str:
        """Any text: with variables for the parts that may be secret, or as one where its parts depend on each other."""
        text = self._without_defaults(what, text, "")
        inside = _json_texts(text)
        if inside is not None:
            hidden = any(not _may_be_shown(value, key) for key, value in inside)
            return self._put_own(what, text, name) if hidden else text
        if re.search(r"\s", text):
            # a command line for a shell, or prose: quoting inside it is the author's
            return self._put_own(what, text, name) if self._hides(text) else text
        return self._word(what, text, name)

    def _word(self, what: str, word: str, name: str) -> str:
        def user_info(match: re.Match[str]) -> str:
            if match[0] == "git" or _may_be_shown(match[0], "secret"):
                return match[0]
            return self._put_own(what, match[0], "USER_INFO")

        def named(match: re.Match[str]) -> str:
            if not is_secret_name(match["name"]) or _may_be_shown(match["value"], match["name"]):
                return match[0]
            return f"{match['name']}={self._put_own(what, match['value'], match['name'])}"

        def piece(match: re.Match[str]) -> str:
            return self._put_own(what, match[0], name) if looks_secret(match[0]) else match[0]

        word = _USER_INFO.sub(user_info, word) if "://" in word else _BARE_USER_INFO.sub(user_info, word, count=1)
        word = _NAMED.sub(named, word)
        if "://" not in word and looks_secret(_outside(word)) and not VARIABLE.search(word):
            # in base64 a slash is a letter like others
            setting = _SETTING.fullmatch(word)
            named_by_author = setting is not None and not looks_secret(setting["name"])
            head, value = (setting["head"], setting["value"]) if setting and named_by_author else ("", word)
            return head + self._put_own(what, value, name)
        parts = re.split(_WHOLE_VARIABLE, word)
        return "".join(part if place % 2 else _PIECE.sub(piece, part) for place, part in enumerate(parts))

    def _hides(self, text: str) -> bool:
        """Whether something of a text, read as a command line, would be hidden."""
        try:
            words = shlex.split(text)
        except ValueError:
            words = []
        if not words or text in words:  # as with an open quotation mark, or white space that shells do not know
            words = text.split()
        trial = Hiding(self._server, Variables())
        for before, word in zip(["", *words], words, strict=False):
            trial._arg("", before, word)
        return bool(trial.notes)

    def _without_defaults(self, what: str, text: str, name: str) -> str:
        """Without the defaults of variables that are not plainly harmless, under this name and the variable's."""

        def replace(match: re.Match[str]) -> str:
            default = match["default"] or ""
            if is_harmless(default, name) and is_harmless(default, match["name"]):
                return match[0]
            self.notes.append(f"{what}: the default of ${{{match['name']}}} is left out")
            return f"${{{match['name']}}}"

        return VARIABLE.sub(replace, text)

    def _put_own(self, what: str, value: str, name: str) -> str:
        """A variable named for the server, where the name says nothing by itself."""
        return self._put(what, value, f"{self._server}_{name.strip('-')}".upper())

    def _put(self, what: str, value: str, *names: str) -> str:
        variable = self._variables.name_for(value, *names)
        self.notes.append(f"{what} is taken from ${{{variable}}}")
        return f"${{{variable}}}"


def _fit(name: str) -> str:
    fitting = _UNFIT.sub("_", name.replace("-", "_"))
    return fitting if re.match(r"[A-Za-z_]", fitting) else f"_{fitting}"


def _outside(text: str) -> str:
    """What stands outside of variables."""
    return VARIABLE.sub("", text)


def _may_be_shown(value: str, name: str) -> bool:
    """Whether what stands outside of variables, and their defaults, are harmless under this name."""
    if not all(is_harmless(match["default"] or "", name) for match in VARIABLE.finditer(value)):
        return False
    rest = _outside(value)
    return is_harmless(rest, name) or (rest != value and _BETWEEN.fullmatch(rest) is not None)


def _json_texts(text: str) -> list[tuple[str, str]] | None:
    """The texts of a JSON object or list with the keys they stand under; None when it is no such text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, str]] = []

    def walk(key: str, inner: Any) -> None:
        if isinstance(inner, dict):
            for name, each in inner.items():
                walk(name, each)
        elif isinstance(inner, list):
            for each in inner:
                walk(key, each)
        elif isinstance(inner, str):
            found.append((key, inner))
        elif inner is not None and not isinstance(inner, bool):
            found.append((key, json.dumps(inner)))

    walk("", value)
    return found
