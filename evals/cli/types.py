"""Kinds of values that several commands take."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click


class Share(click.ParamType[Fraction]):
    """A number from 0 to 1, kept exact: 0.9, 7/10."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        from evals.gate import parse_threshold

        if isinstance(value, Fraction):
            return value
        try:
            return parse_threshold(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


FILE = click.Path(path_type=Path, dir_okay=False)
SECONDS = click.FloatRange(min=0, min_open=True)
