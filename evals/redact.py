"""Keep secrets out of what is written down: journals, traces, logs, reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel

MASK = "[secret]"
_SHORTEST = 6  # a shorter value would mask ordinary words

_Model = TypeVar("_Model", bound=BaseModel)


class Redactor:
    """Replaces every known secret value by `MASK`, the longest first."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {one for one in secrets if len(one) >= _SHORTEST}
        known |= {quote(one, safe="", errors="replace") for one in known}  # as it stands in an address
        self._secrets = sorted(known, key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def model(self, model: _Model, keep: frozenset[str] = frozenset()) -> _Model:
        """A copy with every text in it redacted, keys of mappings too, but for the fields to keep."""
        if not self._secrets:
            return model
        fields = model.model_dump().items()
        return type(model).model_validate({name: one if name in keep else self.value(one) for name, one in fields})

    def value(self, value: object) -> object:
        """The same of JSON-like data."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(one) for one in value)
        return value
