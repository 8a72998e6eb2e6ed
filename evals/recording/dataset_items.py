"""Writing datasets and their items. Only what authors ask for comes through here: a run never writes a dataset.

Source of the rules: exchanges recorded with Langfuse 4.16.0. A POST of an existing id merges: a field that is left
out or null keeps its value, `metadata` is replaced whole. Every POST, even of equal values, makes a new version. An id
belongs to one dataset of the project for good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx
from langfuse.api import DatasetStatus
from langfuse.api.core import ApiError

from evals.errors import TwogateError
from evals.recording.client import NOT_LANGFUSE, Recorder

_PAGE = 100  # items a request, the server's limit
_ATTEMPTS = 3  # more tries after 429 and 5xx, by the SDK

_T = TypeVar("_T")

Status = Literal["ACTIVE", "ARCHIVED"]


@dataclass(frozen=True)
class ItemRecord:
    """An item as the server holds it."""

    id: str
    dataset: str
    input: Any
    expected_output: Any
    metadata: Any
    status: Status


@dataclass(frozen=True)
class DatasetRecord:
    """A dataset as the server holds it, without its items."""

    name: str
    description: str | None
    metadata: Any


class IdTakenError(TwogateError):
    """The id belongs to another dataset of the project (409)."""


class DatasetWriter:
    """Reads and writes datasets of one server. Every method raises TwogateError for what the user can mend."""

    def __init__(self, recorder: Recorder) -> None:
        self._api = recorder.client.api
        self.where = "the embedded store" if recorder.server.embedded else recorder.server.keys.base_url

    def dataset(self, name: str) -> DatasetRecord | None:
        """The dataset of that name; None when there is none."""
        found = self._unless_missing(lambda: self._api.datasets.get(quote(name, safe="")))
        return None if found is None else DatasetRecord(found.name, found.description, found.metadata)

    def upsert_dataset(self, name: str, description: str | None, metadata: Any) -> None:
        """Create a dataset, or give it another description or metadata; None keeps what is there."""
        values = {"description": description, "metadata": metadata}
        sent = {key: value for key, value in values.items() if value is not None}
        self._call(lambda: self._api.datasets.create(name=name, **sent))

    def active_items(self, dataset: str) -> list[ItemRecord]:
        """Every active item, all pages; archived ones are never listed."""
        found: list[ItemRecord] = []
        page, pages = 1, 1
        while page <= pages:
            listed = partial(self._api.dataset_items.list, dataset_name=dataset, page=page, limit=_PAGE)
            answer = self._call(listed)
            found += map(_record, answer.data)
            page, pages = page + 1, answer.meta.total_pages
        # A write between two pages can move an item to the front, so that it is listed twice: the first is newer.
        return list({record.id: record for record in reversed(found)}.values())

    def item(self, item_id: str) -> ItemRecord | None:
        """The item of that id, active or archived, of any dataset; None when there is none."""
        # The SDK puts the id into the path as it is, where a slash would lead to an unknown route.
        found = self._unless_missing(lambda: self._api.dataset_items.get(quote(item_id, safe="")))
        return None if found is None else _record(found)

    def upsert_item(self, dataset: str, item_id: str, *, status: Status, **values: Any) -> None:
        """Write a new version. values: input, expected_output, metadata; those left out or None stay as they are.

        Raises IdTakenError when the id is another dataset's.
        """
        sent = {key: value for key, value in values.items() if value is not None}
        try:
            self._call(
                lambda: self._api.dataset_items.create(
                    dataset_name=dataset,
                    id=item_id,
                    status=DatasetStatus(status),
                    request_options={"max_retries": _ATTEMPTS},
                    **sent,
                )
            )
        except _RefusedError as refused:
            if refused.status == 409:
                raise IdTakenError(
                    f"{item_id}: id: belongs to another dataset of this project; ids are never free again, "
                    "not even after archiving or deleting: choose a new id"
                ) from None
            raise TwogateError(f"{item_id}: {refused.lines[0]}") from None

    def _unless_missing(self, call: Callable[[], _T]) -> _T | None:
        try:
            return self._call(call)
        except _RefusedError as refused:
            if refused.status == 404:
                return None
            raise

    def _call(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except ApiError as error:
            status = error.status_code or 0
            body = error.body
            said = body.get("message") if isinstance(body, dict) else body
            advice = {
                401: "check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY",
                403: "check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY",
                413: "the item is too large (4.5 MB at most); shorten it",
            }.get(status, "try again" if status >= 500 or status == 429 else "mend it and try again")
            raise _RefusedError(
                status, f"{self.where} answered {status}: {' '.join(str(said).split())[:300]}; {advice}"
            ) from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise TwogateError(f"{self.where} cannot be reached: {reason}; check LANGFUSE_BASE_URL") from None
        except ValueError:
            raise TwogateError(f"{self.where} {NOT_LANGFUSE}") from None


class _RefusedError(TwogateError):
    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


def _record(item: Any) -> ItemRecord:
    return ItemRecord(
        id=item.id,
        dataset=item.dataset_name,
        input=item.input,
        expected_output=item.expected_output,
        metadata=item.metadata,
        status="ARCHIVED" if getattr(item.status, "value", item.status) == "ARCHIVED" else "ACTIVE",
    )
