"""What a store is told when it is made: who may talk to it, and what it calls its project."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from evals.embedded.langfuse import times

# Well-known keys: they keep nothing out and are for loopback only.
DEFAULT_PUBLIC_KEY = "pk-lf-twogate-embedded"
DEFAULT_SECRET_KEY = "sk-lf-twogate-embedded"  # noqa: S105

# The Langfuse version whose recorded answers this store gives.
LANGFUSE_VERSION = "4.16.0"

IdKind = Literal["dataset", "item", "score", "run-item", "job"]


@dataclass(frozen=True)
class Project:
    """The one project of a store."""

    id: str = "twogate"
    name: str = "Twogate"
    organization_id: str = "twogate-org"
    organization_name: str = "Twogate"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on this address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def random_id(kind: IdKind) -> str:
    """A UUID for everything but datasets, whose ids have no dashes, as Langfuse's have none."""
    return f"ds{uuid.uuid4().hex[:23]}" if kind == "dataset" else str(uuid.uuid4())


@dataclass(frozen=True)
class StoreSettings:
    """The settings of one store.

    `refuse_score_arrays` makes ``POST /scores`` answer 400 to an array, as Langfuse 4.16.0 does. `now` (in
    milliseconds) and `new_id` are where times and ids come from.
    """

    project: Project = field(default_factory=Project)
    public_key: str = DEFAULT_PUBLIC_KEY
    secret_key: str = field(default=DEFAULT_SECRET_KEY, repr=False)
    refuse_score_arrays: bool = False
    now: Callable[[], int] = times.now_ms
    new_id: Callable[[IdKind], str] = random_id
