"""Fetching a dataset. A run reads it and never writes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
from langfuse.api.core import ApiError

from evals.errors import TwogateError
from evals.recording.client import NOT_LANGFUSE, Recorder

_PAGE = 100  # items a request, the server's limit


@dataclass(frozen=True)
class Dataset:
    """A dataset as Langfuse holds it: the SDK's items (a run's experiment hangs on them) and their plain values."""

    name: str
    id: str
    items: tuple[Any, ...]

    def raw_items(self) -> list[dict[str, Any]]:
        """The items with the keys a dataset's authors know."""
        return [
            {
                "id": item.id,
                "input": item.input,
                "expectedOutput": item.expected_output,
                "metadata": item.metadata,
                "status": getattr(item.status, "value", item.status),
            }
            for item in self.items
        ]


def fetch_dataset(recorder: Recorder, name: str, version: datetime | None = None) -> Dataset:
    """All pages of a dataset. Raises TwogateError that says what to do when it cannot be had."""
    where = "the embedded store" if recorder.server.embedded else recorder.server.keys.base_url
    try:
        found = recorder.client.get_dataset(name, fetch_items_page_size=_PAGE, version=version)
    except ApiError as error:
        if error.status_code == 404:
            problem = (
                f"there is no dataset {name!r} in {where}; bring a file into it by twogate items push FILE, "
                "or name another by --dataset"
            )
        elif error.status_code in (401, 403):
            problem = (
                f"{where} refuses the keys ({error.status_code}); check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
            )
        else:
            problem = f"{where} answered {error.status_code} when asked for the dataset {name!r}; try again"
        raise TwogateError(problem) from None
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise TwogateError(f"{where} cannot be reached: {reason}; check LANGFUSE_BASE_URL") from None
    except ValueError:
        raise TwogateError(f"{where} {NOT_LANGFUSE}") from None
    return Dataset(name=found.name, id=found.id, items=tuple(found.items))
