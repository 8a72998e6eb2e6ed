"""Settings from the environment and ``.env``. Values are cleaned before any client sees them.

A CI secret pasted with a trailing newline, a quote or a byte order mark is the most common way for a run to fail with a
message about HTTP headers; cleaning costs nothing.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dotenv import dotenv_values

from evals.errors import TwogateError

ANTHROPIC_API_KEY = "ANTHROPIC_API_KEY"
ANTHROPIC_BASE_URL = "ANTHROPIC_BASE_URL"
OPENROUTER_API_KEY = "OPENROUTER_API_KEY"
OPENROUTER_BASE_URL = "OPENROUTER_BASE_URL"
LANGFUSE_PUBLIC_KEY = "LANGFUSE_PUBLIC_KEY"
LANGFUSE_SECRET_KEY = "LANGFUSE_SECRET_KEY"  # noqa: S105  (the variable's name)
LANGFUSE_BASE_URL = "LANGFUSE_BASE_URL"
LANGFUSE_HOST = "LANGFUSE_HOST"  # the older name of LANGFUSE_BASE_URL
LANGFUSE_VARIABLES = (LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL)

# Credentials: kept out of the environment of every child process, and out of everything written down.
SECRET_VARIABLES = (
    ANTHROPIC_API_KEY,
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    OPENROUTER_API_KEY,
    LANGFUSE_PUBLIC_KEY,
    LANGFUSE_SECRET_KEY,
)
# What Claude Code itself needs of them; it gets these by its own environment, nothing else does.
AGENT_VARIABLES = (ANTHROPIC_API_KEY, "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


def clean(value: str) -> str:
    """Drop control and invisible format characters, white space around, and one pair of quotes around it."""
    text = "".join(char for char in value if unicodedata.category(char) not in ("Cc", "Cf")).strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'`":
        text = text[1:-1].strip()
    return text


@dataclass(frozen=True)
class LangfuseKeys:
    """Where a run is recorded."""

    public_key: str
    secret_key: str = field(repr=False)
    base_url: str


@dataclass(frozen=True)
class Settings:
    """The environment a command runs in, cleaned. `root` is the folder that holds .env, twogate.toml and .twogate."""

    root: Path
    variables: Mapping[str, str] = field(repr=False)
    demo: bool = False
    """A demo in somebody's own project keeps its runs and its store apart from theirs."""

    @classmethod
    def load(cls, root: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
        """Read ``.env`` at the root under the real environment (which wins), and clean every value.

        A variable that is empty after cleaning counts as not set: CI gives an absent secret as an empty string.
        """
        root = (root or Path.cwd()).resolve()
        merged: dict[str, str] = {}
        env_file = root / ".env"
        if env_file.is_file():
            try:
                found = dotenv_values(env_file, encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise TwogateError(f"{env_file.name}: cannot be read: {error}; save it as UTF-8 text") from None
            merged.update({key: value for key, value in found.items() if value is not None})
        real = os.environ if environ is None else environ
        merged.update({key: value for key, value in real.items() if clean(value)})
        cleaned = {key: clean(value) for key, value in merged.items()}
        return cls(root=root, variables={key: value for key, value in cleaned.items() if value})

    def get(self, name: str) -> str | None:
        return self.variables.get(name)

    @property
    def ci(self) -> bool:
        """True where a CI service runs this (``CI`` set to anything but a no)."""
        return (self.get("CI") or "").lower() not in ("", "0", "false", "no")

    @property
    def state(self) -> Path:
        """``.twogate``: runs and the embedded store's database; a demo's are in a folder of their own there."""
        return self.root / ".twogate" / "demo" if self.demo else self.root / ".twogate"

    @property
    def shipped_datasets(self) -> Path | None:
        """The folder of datasets that come with Twogate, where the embedded store is given them on first use: in its
        own checkout and for a demo. None in any other project, whose files only a push brings into a dataset.
        """
        from evals.shipped import shipped

        folder = shipped("fixtures", "datasets")
        own = folder.resolve() == (self.root / "fixtures" / "datasets").resolve()
        return folder if own or self.demo else None

    def for_demo(self) -> Settings:
        """These settings for a demo: the same in Twogate's own checkout, kept apart in any other project."""
        return self if self.shipped_datasets is not None else replace(self, demo=True)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be written down."""
        return tuple(value for name in SECRET_VARIABLES if (value := self.variables.get(name)))

    def langfuse(self) -> LangfuseKeys | None:
        """The Langfuse server to use; None when no variable names one.

        Raises TwogateError that lists the missing variables when some but not all are set.
        """
        values = {
            LANGFUSE_PUBLIC_KEY: self.get(LANGFUSE_PUBLIC_KEY),
            LANGFUSE_SECRET_KEY: self.get(LANGFUSE_SECRET_KEY),
            LANGFUSE_BASE_URL: self.get(LANGFUSE_BASE_URL) or self.get(LANGFUSE_HOST),
        }
        missing = [name for name, value in values.items() if not value]
        if len(missing) == len(values):
            return None
        if missing:
            there = [name for name in values if name not in missing]
            raise TwogateError(
                f"{', '.join(missing)} not set, while {', '.join(there)} is; "
                "set all three (or none, for the embedded store)"
            )
        base_url = values[LANGFUSE_BASE_URL] or ""
        if not base_url.startswith(("http://", "https://")):
            raise TwogateError(f"{LANGFUSE_BASE_URL} is {base_url!r}; it must start with http:// or https://")
        return LangfuseKeys(
            public_key=values[LANGFUSE_PUBLIC_KEY] or "",
            secret_key=values[LANGFUSE_SECRET_KEY] or "",
            base_url=base_url.rstrip("/"),
        )

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are not set."""
        return [name for name in names if not self.get(name)]


def withhold_secrets(environ: MutableMapping[str, str] | None = None) -> None:
    """Take credentials out of this process's environment, after `Settings.load` has read them.

    Child processes inherit the environment: without this an agent's shell, or the server under test, could read a
    Langfuse or judge key and print it into a trace.
    """
    environ = os.environ if environ is None else environ
    for name in (*SECRET_VARIABLES, LANGFUSE_BASE_URL, LANGFUSE_HOST):
        environ.pop(name, None)
