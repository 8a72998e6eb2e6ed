"""What datasets and dataset items are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from evals.embedded.langfuse import times
from evals.embedded.langfuse.jsonvalues import KEEP, Keep

Status = Literal["ACTIVE", "ARCHIVED"]
T = TypeVar("T")


@dataclass(frozen=True)
class Dataset:
    """A dataset; times in milliseconds."""

    id: str
    name: str
    description: str | None
    metadata: Any
    input_schema: Any
    expected_output_schema: Any
    created_at: int
    updated_at: int

    def answer(self, project_id: str) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "id": self.id,
            "projectId": project_id,
            "name": self.name,
            "description": self.description,
            "metadata": self.metadata,
            "inputSchema": self.input_schema,
            "expectedOutputSchema": self.expected_output_schema,
            "createdAt": times.iso(self.created_at),
            "updatedAt": times.iso(self.updated_at),
        }


@dataclass(frozen=True)
class DatasetChange:
    """What an upsert of a dataset sends. `KEEP`: the stored value stays."""

    name: str
    description: str | Keep = KEEP
    metadata: Any | Keep = KEEP
    input_schema: Any | Keep = KEEP
    expected_output_schema: Any | Keep = KEEP


@dataclass(frozen=True)
class Item:
    """One version of a dataset item; `created_at` (milliseconds) is when this version was written."""

    id: str
    dataset_id: str
    dataset_name: str
    status: Status
    input: Any
    expected_output: Any
    metadata: Any
    source_trace_id: str | None
    source_observation_id: str | None
    created_at: int

    def answer(self) -> dict[str, Any]:
        """As the API shows it."""
        written = times.iso(self.created_at)
        return {
            "id": self.id,
            "datasetId": self.dataset_id,
            "status": self.status,
            "sourceTraceId": self.source_trace_id,
            "sourceObservationId": self.source_observation_id,
            "createdAt": written,
            "updatedAt": written,
            "input": self.input,
            "expectedOutput": self.expected_output,
            "metadata": self.metadata,
            "datasetName": self.dataset_name,
            "mediaReferences": [],
        }


@dataclass(frozen=True)
class ItemChange:
    """What an upsert of an item sends. `KEEP`: the stored value stays, None clears it.

    None keeps the status and the sources, too.
    """

    dataset_name: str
    id: str | None = None
    input: Any | Keep = KEEP
    expected_output: Any | Keep = KEEP
    metadata: Any | Keep = KEEP
    status: Status | None = None
    source_trace_id: str | None = None
    source_observation_id: str | None = None


@dataclass(frozen=True)
class ItemFilter:
    """Which items to list; `as_of` (milliseconds) lists them as they were then."""

    dataset: Dataset | None = None
    source_trace_id: str | None = None
    source_observation_id: str | None = None
    as_of: int | None = None


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list that is read by page number."""

    items: Sequence[T]
    page: int
    limit: int
    total: int

    def meta(self) -> dict[str, int]:
        """As the API shows it."""
        return {
            "page": self.page,
            "limit": self.limit,
            "totalItems": self.total,
            "totalPages": -(-self.total // self.limit),
        }
