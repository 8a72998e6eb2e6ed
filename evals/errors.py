"""The one exception the command line turns into plain lines."""

from __future__ import annotations

from collections.abc import Iterable


class TwogateError(Exception):
    """Something the user can mend. Each line names what is wrong, where, and how to mend it.

    Raise it with every problem found, not the first: ``raise TwogateError(problems)``.
    """

    def __init__(self, lines: str | Iterable[str]) -> None:
        self.lines: list[str] = [lines] if isinstance(lines, str) else list(lines)
        super().__init__("\n".join(self.lines))
