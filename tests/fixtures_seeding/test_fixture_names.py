"""Only what a run left may go, whatever names a product's resources have."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from product_standin import Product
from seeding_bench import Bench

from evals.fixtures.naming import ForbiddenResourceError, Names

pytest_plugins = ["seeding_fixtures"]

_PIECES = st.sampled_from(["eval-", "EVAL-", "eval_", "eval", "-", "fixture", "fixture-", " ", "x", "é", "\n", "…"])
_NAMES = st.lists(_PIECES, max_size=6).map("".join) | st.text(max_size=20)


@given(_NAMES)
def test_a_name_without_the_prefix_is_never_removable(name: str) -> None:
    names = Names("eval-")
    if name[:5] != "eval-":
        assert not names.is_removable(name)
        with pytest.raises(ForbiddenResourceError):
            names.refuse_unless_removable(name)


@given(_NAMES)
def test_a_permanent_name_is_never_removable_and_the_rest_of_the_prefix_is(rest: str) -> None:
    names = Names("eval-")
    name = f"eval-{rest}"
    permanent = rest.startswith("fixture-")
    assert names.is_permanent(name) is permanent
    assert names.is_removable(name) is not permanent


@pytest.mark.parametrize(
    ("name", "removable"),
    [
        ("eval-x", True),
        ("eval-", True),
        ("eval-fixtures", True),
        ("eval-fixture-x", False),
        ("Eval-x", False),
        (" eval-x", False),
        ("evaluation", False),
        ("my-eval-x", False),
        ("", False),
    ],
)
def test_names_that_look_alike(name: str, removable: bool) -> None:
    assert Names("eval-").is_removable(name) is removable


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(others=st.lists(_NAMES, max_size=8, unique=True))
def test_cleaning_leaves_exactly_the_others(bench: Bench, product: Product, others: list[str]) -> None:
    product.widgets.clear()
    product.add(*others, "eval-left-over")
    bench.seeder().clean()
    assert product.names() == sorted(name for name in others if name[:5] != "eval-" or name[5:].startswith("fixture-"))
