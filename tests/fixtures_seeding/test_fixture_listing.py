"""Lists are read to their end, whatever style of pages an API has."""

from __future__ import annotations

from typing import Any

import pytest
from product_standin import Product
from seeding_bench import Bench

from evals.errors import TwogateError

pytest_plugins = ["seeding_fixtures"]

STYLES: list[tuple[str, dict[str, Any]]] = [
    ("offset", {"style": "offset", "limit": 4}),
    ("offset", {"style": "offset", "limit": 4, "total": "total"}),
    ("cursor", {"style": "cursor", "next": "next", "limit": 4}),
    ("page", {"style": "page", "limit": 4}),
    ("page", {"style": "page", "limit": 4, "pages": "pages"}),
]


@pytest.mark.parametrize("count", [0, 3, 4, 9])
@pytest.mark.parametrize(("style", "paging"), STYLES)
def test_every_page_is_read_once(
    bench: Bench, product: Product, style: str, paging: dict[str, Any], count: int
) -> None:
    product.paging = style
    product.add(*(f"w-{number}" for number in range(count)))
    family = bench.family(list={"path": "widgets", "items": "items", "paging": paging})
    listed = bench.seeder(family).list()
    assert [one.name for one in listed] == [f"w-{number}" for number in range(count)]
    assert len(product.requests) <= count // 4 + 2


def test_a_service_that_caps_the_limit_hides_nothing(bench: Bench, product: Product) -> None:
    product.paging, product.most_per_page = "offset", 2
    product.add(*(f"w-{number}" for number in range(7)))
    family = bench.family(list={"path": "widgets", "items": "items", "paging": {"style": "offset", "limit": 100}})
    assert len(bench.seeder(family).list()) == 7


def test_pages_of_nameless_resources_do_not_end_the_list(bench: Bench, product: Product) -> None:
    product.paging = "offset"
    for _ in range(4):
        product.add(None)  # type: ignore[arg-type]
    product.add("eval-last")
    family = bench.family(list={"path": "widgets", "items": "items", "paging": {"style": "offset", "limit": 2}})
    assert [one.name for one in bench.seeder(family).list()] == ["eval-last"]


@pytest.mark.parametrize("paging", [STYLES[0][1], STYLES[3][1]])
def test_a_service_that_does_not_know_the_parameters_ends_too(
    bench: Bench, product: Product, paging: dict[str, Any]
) -> None:
    product.ignores_paging = True
    product.add("a", "b")
    family = bench.family(list={"path": "widgets", "items": "items", "paging": paging})
    assert len(bench.seeder(family).list()) == 2
    assert len(product.requests) == 2


def test_a_cursor_that_comes_back_is_an_error(bench: Bench, product: Product) -> None:
    product.add("a")
    paging = {"style": "cursor", "next": "items"}
    family = bench.family(list={"path": "widgets", "items": "items", "paging": paging})
    with pytest.raises(TwogateError, match=r"comes back; mend list\.paging"):
        bench.seeder(family).list()


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ({"path": "widgets"}, "the answer has no list at 'its top'; mend list.items"),
        ({"path": "widgets", "items": "data"}, "the answer has no list at 'data'"),
        ({"path": "widgets", "items": "items", "id": "uuid"}, "items[0] has no id at 'uuid'; mend list.id"),
    ],
)
def test_an_answer_of_another_form_is_an_error(
    bench: Bench, product: Product, described: dict[str, Any], said: str
) -> None:
    product.add("a")
    with pytest.raises(TwogateError) as caught:
        bench.seeder(bench.family(list=described)).list()
    assert said in caught.value.lines[0]


def test_ids_may_be_numbers(bench: Bench, product: Product) -> None:
    product.widgets["7"] = {"id": 7, "name": "eval-x"}
    bench.seeder().clean()
    assert product.names() == []
