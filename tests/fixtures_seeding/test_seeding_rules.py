"""Cleaning and seeding one family: idempotent, side by side with others, and never outside the prefix."""

from __future__ import annotations

from typing import Any

import pytest
from product_standin import Product
from seeding_bench import Bench

from evals.errors import TwogateError

pytest_plugins = ["seeding_fixtures"]

PERMANENT = {"permanent": [{"name": "eval-fixture-a", "body": {"size": 3, "parts": {"left": [1, 2]}}}]}


def test_cleaning_twice_finds_nothing_the_second_time(bench: Bench, product: Product) -> None:
    product.add("eval-a", "eval-b", "mine", "eval-fixture-x")
    assert bench.seeder().clean() == 2
    assert bench.seeder().clean() == 0
    assert product.names() == ["eval-fixture-x", "mine"]


def test_seeding_twice_writes_nothing_the_second_time(bench: Bench, product: Product) -> None:
    family = bench.family(**PERMANENT)
    assert bench.seeder(family).seed() == 1
    sent = len(product.writes())
    assert bench.seeder(family).seed() == 0
    assert sent == len(product.writes()) == 1


def test_a_permanent_fixture_that_was_changed_is_put_right(bench: Bench, product: Product) -> None:
    product.add("eval-fixture-a", size=4, parts={"left": [1, 2], "right": []}, note="kept")
    family = bench.family(**PERMANENT)
    assert bench.seeder(family).seed() == 1
    (widget,) = product.widgets.values()
    assert widget["size"] == 3
    assert widget["note"] == "kept"
    assert [method for method, _ in product.writes()] == ["PUT"]


def test_a_resource_renamed_after_it_was_listed_is_left_alone(bench: Bench, product: Product) -> None:
    product.add("eval-a", "eval-b")

    def rename(served: Product) -> None:
        served.widgets["w1"]["name"] = "precious"

    product.on_list = rename
    bench.seeder().clean()
    assert product.names() == ["precious"]
    assert product.writes() == [("DELETE", "/api/widgets/w2")]


def test_a_resource_that_somebody_else_deletes_is_gone_and_no_error(bench: Bench, product: Product) -> None:
    product.add("eval-a")
    product.on_list = lambda served: served.widgets.clear()
    bench.seeder().clean()
    assert product.writes() == []
    product.add("eval-a")
    without_get = bench.family(get=None)
    bench.seeder(without_get).clean()
    assert [method for method, _ in product.writes()] == ["DELETE"]


def test_one_deletion_that_fails_does_not_keep_the_others(bench: Bench, product: Product) -> None:
    product.add("eval-a", "eval-b", "eval-c")
    product.refuse_deletion_of = {"eval-a", "eval-c"}
    with pytest.raises(TwogateError) as caught:
        bench.seeder().clean()
    assert [line.split(": ")[1] for line in caught.value.lines] == ["eval-a (w1)", "eval-c (w3)"]
    assert "409 in-use: It is in use." in caught.value.lines[0]
    assert product.names() == ["eval-a", "eval-c"]


def test_cleaning_waits_until_the_deleted_are_no_longer_listed(bench: Bench, product: Product) -> None:
    product.add("eval-a", "eval-b")
    product.hidden_lists = 3
    assert bench.seeder().clean() == 2
    assert [method for method, _ in product.writes()] == ["DELETE", "DELETE"]
    assert product.hidden_lists == 0


def test_what_stays_listed_for_too_long_is_an_error(bench: Bench, product: Product) -> None:
    product.add("eval-a")
    product.hidden_lists = 1000
    with pytest.raises(TwogateError, match="still listed 5 s after it was deleted"):
        bench.seeder(bench.family(wait=5)).clean()
    assert sum(bench.slept) == pytest.approx(5)


def test_seeding_waits_until_the_created_are_listed(bench: Bench, product: Product) -> None:
    product.hidden_lists = 3
    bench.seeder(bench.family(**PERMANENT)).seed()
    assert len(product.writes()) == 1
    assert bench.slept


def test_a_run_that_makes_new_ones_all_the_time_does_not_hang_cleaning(bench: Bench, product: Product) -> None:
    product.add("eval-0")
    product.on_list = lambda served: served.add(f"eval-{len(served.requests)}")
    with pytest.raises(TwogateError, match="keep appearing; is a run under way"):
        bench.seeder().clean()


def test_a_name_taken_by_another_seeder_is_accepted(bench: Bench, product: Product) -> None:
    def another(served: Product) -> None:
        served.on_list = None
        served.add("eval-fixture-a", size=3, parts={"left": [1, 2]})

    product.on_list = another
    assert bench.seeder(bench.family(**PERMANENT)).seed() == 1
    assert product.names() == ["eval-fixture-a"]
    assert [method for method, _ in product.writes()] == ["POST"]


def test_a_name_taken_by_another_seeder_with_other_content_is_put_right(bench: Bench, product: Product) -> None:
    def another(served: Product) -> None:
        served.on_list = None
        served.add("eval-fixture-a", size=9)

    product.on_list = another
    bench.seeder(bench.family(**PERMANENT)).seed()
    assert [method for method, _ in product.writes()] == ["POST", "PUT"]
    assert next(iter(product.widgets.values()))["size"] == 3


def test_a_taken_name_that_is_not_listed_is_an_error(bench: Bench, product: Product) -> None:
    family = bench.family(**PERMANENT, wait=2)

    def refuse(served: Product) -> None:
        served.on_list = None
        served.faults = [(409, {})]

    product.on_list = refuse
    with pytest.raises(TwogateError, match=r"says that its name is taken \(409\), yet lists none"):
        bench.seeder(family).seed()


def test_a_value_the_product_keeps_differently_is_an_error_that_names_it(bench: Bench, product: Product) -> None:
    product.keep = lambda body: {**body, "size": str(body["size"])}
    with pytest.raises(TwogateError, match="eval-fixture-a can't be brought about: size is '3', not 3"):
        bench.seeder(bench.family(**PERMANENT)).seed()


def test_two_permanent_fixtures_of_one_name_are_an_error(bench: Bench, product: Product) -> None:
    product.add("eval-fixture-a", "eval-fixture-a")
    with pytest.raises(TwogateError, match="there are 2 widgets named eval-fixture-a; delete all but one"):
        bench.seeder(bench.family(**PERMANENT)).seed()
    assert product.writes() == []


def test_a_state_that_the_body_cant_say_is_reached_by_its_own_request(bench: Bench, product: Product) -> None:
    steps: dict[str, Any] = {
        "set_state": [
            {"state": {"locked": True}, "path": "widgets/{id}/lock"},
            {"state": {"locked": False}, "path": "widgets/{id}/lock", "body": {"locked": False}},
        ],
        "permanent": [
            {"name": "eval-fixture-locked", "body": {}, "state": {"locked": True}},
            {"name": "eval-fixture-open", "body": {}, "state": {"locked": False}},
        ],
    }
    product.add("eval-fixture-open", locked=True)
    family = bench.family(**steps)
    assert bench.seeder(family).seed() == 2
    assert {widget["name"]: widget["locked"] for widget in product.widgets.values()} == {
        "eval-fixture-open": False,
        "eval-fixture-locked": True,
    }
    assert bench.seeder(family).status().ready


def test_what_must_happen_before_a_deletion_happens_where_it_applies(bench: Bench, product: Product) -> None:
    step = {"when": {"locked": True}, "path": "widgets/{id}/lock", "body": {"locked": False}}
    product.add("eval-a", locked=True)
    product.add("eval-b", locked=False)
    product.add("mine", locked=True)
    bench.seeder(bench.family(before_delete=[step])).clean()
    assert product.names() == ["mine"]
    assert product.writes() == [
        ("POST", "/api/widgets/w1/lock"),
        ("DELETE", "/api/widgets/w1"),
        ("DELETE", "/api/widgets/w2"),
    ]


def test_a_dry_run_sends_nothing_that_writes_and_says_all(bench: Bench, product: Product) -> None:
    step = {"when": {"locked": True}, "path": "widgets/{id}/lock", "body": {"locked": False}}
    product.add("eval-a", locked=True)
    product.add("eval-fixture-a", size=1)
    permanents = [*PERMANENT["permanent"], {"name": "eval-fixture-new"}]
    seeder = bench.seeder(bench.family(before_delete=[step], permanent=permanents), dry_run=True)
    assert seeder.clean() == 1
    assert seeder.seed() == 2
    assert product.writes() == []
    assert bench.notes == [
        "widgets: would delete eval-a (w1)",
        "widgets: would mend eval-fixture-a (w2): size is 1, not 3; parts is missing",
        "widgets: would create eval-fixture-new",
    ]


def test_status_changes_nothing_and_tells_leftovers_and_differences(bench: Bench, product: Product) -> None:
    product.add("eval-a", "mine")
    status = bench.seeder(bench.family(**PERMANENT)).status()
    assert [one.name for one in status.leftovers] == ["eval-a"]
    assert [(one.name, one.differences) for one in status.permanent] == [("eval-fixture-a", ("is missing",))]
    assert not status.ready
    assert product.writes() == []


def test_without_a_get_request_the_list_is_compared(bench: Bench, product: Product) -> None:
    family = bench.family(get=None, **PERMANENT)
    product.add("eval-fixture-a", size=1)
    assert bench.seeder(family).seed() == 1
    assert bench.seeder(family).status().ready


def test_a_get_that_answers_with_another_resource_is_an_error(bench: Bench, product: Product) -> None:
    product.widgets["w9"] = {"id": "w8", "name": "eval-other"}
    product.widgets["w8"] = {"id": "w9", "name": "eval-other"}
    with pytest.raises(TwogateError, match="answers with another resource"):
        bench.seeder().clean()
    assert product.writes() == []
