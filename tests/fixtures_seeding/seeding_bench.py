"""A served product and seeders for it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from product_standin import BASE_FAMILY, Product

from evals.fixtures.access import resolve_access
from evals.fixtures.client import ApiClient
from evals.fixtures.family import Family
from evals.fixtures.seeding import Seeder


class Bench:
    """A product that is served, and seeders for it. Waiting is noted instead of done."""

    def __init__(self, url: str, product: Product, stack: ExitStack) -> None:
        self.url = url
        self.product = product
        self.notes: list[str] = []
        self.slept: list[float] = []
        self._stack = stack

    def family(self, **more: Any) -> Family:
        return Family.model_validate({**BASE_FAMILY, "name": "widgets", "base_url": f"{self.url}/api", **more})

    def client(self, family: Family | None = None, *, read_only: bool = False, **variables: str) -> ApiClient:
        family = family or self.family()
        client = ApiClient(family, resolve_access(family, variables), read_only=read_only, sleep=self.slept.append)
        return self._stack.enter_context(client)

    def seeder(self, family: Family | None = None, *, dry_run: bool = False) -> Seeder:
        family = family or self.family()
        return Seeder(
            family,
            self.client(family, read_only=dry_run),
            self.notes.append,
            permanent_id=lambda *_: None,
            dry_run=dry_run,
            sleep=self.slept.append,
        )
