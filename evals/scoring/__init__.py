"""Scores: what a conversation is worth. Pure; a new scorer is one new file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Score(BaseModel):
    """One named value of a trial. A bool is recorded as a BOOLEAN score, a number as a NUMERIC one."""

    model_config = ConfigDict(frozen=True)

    name: str
    value: bool | float
    comment: str | None = None
