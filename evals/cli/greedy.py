"""Options that take several values, as `argparse` has them with ``nargs='+'``: ``-e A=1 B=2 questions.xml``.

The rules:

* An option declared with ``multiple=True`` takes every word after it up to the next option; repeated, they add up.
* A word that starts with a dash is an option (but a negative number, and a dash alone). To give such a word as a
  value write ``-a=--flag`` or ``--args=--flag``; or put ``--`` right after the option: every word after that is its
  value.
* The file is the one word that belongs to no option. Where there is none, it is the last word of the last option with
  several values that ends in the file's suffix: ``-a my_server.py questions.xml``.
* After a ``--`` anywhere else, every word belongs to no option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import click

_NEGATIVE_NUMBER = re.compile(r"-\d")


class GreedyCommand(click.Command):
    """A command whose ``multiple`` options take several words each, and one of whose words is a file."""

    def __init__(self, *args: Any, file_suffix: str = ".xml", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.file_suffix = file_suffix

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        return super().parse_args(ctx, spread(args, options, self.file_suffix))


@dataclass
class _Group:
    """The words one mention of an option took, as places in the result."""

    places: list[int] = field(default_factory=list)


def spread(words: Sequence[str], options: Sequence[click.Option], file_suffix: str) -> list[str]:
    """The words with each value of a ``multiple`` option in a word of its own, ``--long=value``, as click reads them.

    Raises click.UsageError for an option that is given no value.
    """
    by_name = {name: option for option in options for name in option.opts}
    result: list[str] = []
    free: list[str] = []
    groups: list[_Group] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            free += words[position:]
            break
        if not _is_option(word):
            free.append(word)
            continue
        name, value = _split(word, by_name)
        option = by_name.get(name)
        if option is None:
            result.append(word)  # click says what is wrong with it
        elif value is not None:
            result.append(f"{_long(option)}={value}")
        elif not option.multiple:
            result.append(word)
            if not option.is_flag and position < len(words):
                result.append(words[position])
                position += 1
        else:
            group = _Group()
            rest = position < len(words) and words[position] == "--"
            if rest:
                position += 1
            while position < len(words) and (rest or not _is_option(words[position])):
                group.places.append(len(result))
                result.append(f"{_long(option)}={words[position]}")
                position += 1
            if not group.places:
                following = words[position] if position < len(words) else "--flag"
                raise click.UsageError(
                    f"{word} needs at least one value; one that starts with a dash is written {word}={following}"
                )
            groups.append(group)
    if not free:
        for group in reversed(groups):
            last = result[group.places[-1]].partition("=")[2]
            if last.lower().endswith(file_suffix):
                del result[group.places[-1]]
                free = [last]
                break
    return [*result, "--", *free] if free else result


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and _NEGATIVE_NUMBER.match(word) is None


def _split(word: str, by_name: dict[str, click.Option]) -> tuple[str, str | None]:
    """An option's name and the value in the same word: ``--long=value``, ``-s=value`` or ``-svalue``."""
    name, found, value = word.partition("=")
    if found and name in by_name:
        return name, value
    if not word.startswith("--") and len(word) > 2 and word not in by_name and word[:2] in by_name:
        return word[:2], word[2:]
    return word, None


def _long(option: click.Option) -> str:
    return next(name for name in option.opts if name.startswith("--"))
