from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from product_standin import Product
from seeding_bench import Bench

from evals.embedded.serving import LoopbackServer


@pytest.fixture
def product() -> Product:
    return Product()


@pytest.fixture
def bench(product: Product) -> Iterator[Bench]:
    with ExitStack() as stack:
        server = stack.enter_context(LoopbackServer(product.app()))
        yield Bench(server.url, product, stack)
