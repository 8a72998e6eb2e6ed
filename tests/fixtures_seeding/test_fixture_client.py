"""Requests are tried again where that helps, for so long, and errors say what was asked and what came back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from product_standin import Product
from seeding_bench import Bench

from evals.fixtures.client import ATTEMPTS, ApiError, one_path, retry_after

pytest_plugins = ["seeding_fixtures"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_trouble_is_tried_again(bench: Bench, product: Product, status: int) -> None:
    product.faults = [(status, {})] * (ATTEMPTS - 1)
    product.add("eval-x")
    assert bench.seeder().clean() == 1
    assert len(bench.slept) == ATTEMPTS - 1
    assert product.names() == []


def test_trouble_that_lasts_ends_with_what_was_said(bench: Bench, product: Product) -> None:
    product.faults = [(503, {})] * 100
    with pytest.raises(ApiError) as caught:
        bench.seeder().clean()
    assert caught.value.lines == [
        f"fixtures widgets: list of widgets: GET {bench.url}/api/widgets: 503 trouble: Not now. ({ATTEMPTS} times)"
    ]
    assert len(product.requests) == ATTEMPTS


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_refusal_is_not_tried_again(bench: Bench, product: Product, status: int) -> None:
    product.faults = [(status, {})]
    with pytest.raises(ApiError, match=f"{status} trouble: Not now."):
        bench.seeder().list()
    assert len(product.requests) == 1


def test_retry_after_is_kept_to(bench: Bench, product: Product) -> None:
    product.faults = [(429, {"Retry-After": "7"}), (503, {"Retry-After": "2"})]
    bench.seeder().list()
    assert bench.slept == [7.0, 2.0]


def test_a_service_that_asks_for_an_hour_is_not_waited_for(bench: Bench, product: Product) -> None:
    product.faults = [(429, {"Retry-After": "3600"})]
    with pytest.raises(ApiError, match="asks to wait 3600 s"):
        bench.seeder().list()
    assert bench.slept == []


def test_retry_after_may_be_a_date() -> None:
    now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert retry_after("Thu, 01 Jan 2026 12:00:09 GMT", now) == 9.0
    assert retry_after("Thu, 01 Jan 2026 11:00:00 GMT", now) == 0.0
    assert retry_after("soon", now) is None
    assert retry_after("-5", now) is None
    assert retry_after(None, now) is None


def test_secrets_are_not_in_errors(bench: Bench, product: Product) -> None:
    family = bench.family(headers={"Authorization": "Bearer ${WIDGETS_TOKEN}"})
    product.faults = [(302, {"Location": "/?token=very-secret-token"})]
    with pytest.raises(ApiError) as caught:
        bench.client(family, WIDGETS_TOKEN="very-secret-token").request("GET", "widgets", what="list")
    assert product.authorizations == ["Bearer very-secret-token"]
    assert "very-secret-token" not in str(caught.value)
    assert "302 is sent on to /?token=[secret]" in str(caught.value)


def test_nothing_listening_is_said_plainly(bench: Bench) -> None:
    family = bench.family(base_url="http://127.0.0.1:9/api")
    with pytest.raises(ApiError, match="nothing answers there"):
        bench.client(family).request("GET", "widgets", what="list")


def test_a_page_that_is_no_api_is_said_plainly(bench: Bench, product: Product) -> None:
    with pytest.raises(ApiError, match="404 Not Found"):
        bench.client(bench.family(base_url=bench.url)).request("GET", "widgets", what="list")


def test_a_dry_run_cant_write_at_all(bench: Bench, product: Product) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(RuntimeError, match="dry run"):
            bench.client(read_only=True).request(method, "widgets", what="x")
    assert product.requests == []


@pytest.mark.parametrize(
    ("identifier", "path"), [("a/b", "w/a%2Fb"), ("a?b#c", "w/a%3Fb%23c"), ("u~n", "w/u~n"), ("../x", "w/..%2Fx")]
)
def test_an_id_stays_one_segment_of_a_path(identifier: str, path: str) -> None:
    assert one_path("w/{id}", identifier) == path


@pytest.mark.parametrize("identifier", ["", ".", ".."])
def test_an_id_that_would_mean_the_collection_is_refused(identifier: str) -> None:
    with pytest.raises(ValueError, match="no usable id"):
        one_path("w/{id}", identifier)
