"""Family files are read strictly, with every problem of every file at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evals.errors import TwogateError
from evals.fixtures.access import resolve_access
from evals.fixtures.loading import families_folder, load_families
from evals.shipped import shipped

GOOD = """
description = "Widgets."
base_url = "${WIDGETS_URL}"
%s
[list]
path = "widgets"
[create]
path = "widgets"
[delete]
path = "widgets/{id}"
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        load_families(folder)
    return caught.value.lines


def test_the_shipped_families_are_valid_and_ordered() -> None:
    families = load_families(shipped("fixtures", "families"))
    assert set(families.by_name) == {"tasks", "schedules", "apify-tasks", "apify-schedules"}
    assert [one.name for one in families.to_clean(["tasks"])] == ["schedules", "tasks"]
    assert [one.name for one in families.to_clean(["schedules"])] == ["schedules"]
    assert [one.name for one in families.to_seed(["schedules"])] == ["tasks", "schedules"]
    assert [one.name for one in families.to_seed(["tasks"])] == ["tasks"]


def test_a_projects_own_families_replace_the_shipped_ones(tmp_path: Path) -> None:
    assert families_folder(tmp_path) == shipped("fixtures", "families")
    own = tmp_path / "fixtures" / "families"
    own.mkdir(parents=True)
    assert families_folder(tmp_path) == own


def test_every_problem_of_every_file_comes_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        one=GOOD % 'colour = "red"' + 'pat = "x"\n[before_delete]\n',
        two='description = " "\nbase_url = "ftp://x"\n[list]\npath = "/widgets"\n[delete]\npath = "widgets"\n',
        three="description = ",
    )
    lines = problems(tmp_path)
    text = "\n".join(lines)
    assert "one.toml: colour: is not a known key" in text
    assert "one.toml: delete.pat: is not a known key; did you mean path?" in text
    assert "one.toml: before_delete" in text
    assert "two.toml: description" in text
    assert "two.toml: base_url" in text
    assert "two.toml: list.path" in text
    assert "three.toml: cannot be read" in text
    assert len(lines) == 7


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("widgets", "must name one resource"),
        ("widgets/x{id}", "must name one resource"),
        ("widgets/{id}/{id}", "must name one resource"),
        ("widgets/{name}", "must name one resource"),
        ("widgets/../{id}", "takes no . and .."),
        ("widgets/{id}/", "takes no . and .."),
        ("//other.example/{id}", "delete.path"),
        ("https://other.example/{id}", "delete.path"),
    ],
)
def test_a_deletion_that_could_reach_more_than_one_resource_is_refused(tmp_path: Path, path: str, said: str) -> None:
    write(tmp_path, widgets=(GOOD % "").replace("widgets/{id}", path))
    lines = problems(tmp_path)
    assert len(lines) == 1
    assert said in lines[0]


def test_permanent_fixtures_are_held_to_their_rules(tmp_path: Path) -> None:
    permanents = """
[[permanent]]
name = "eval-widget"
[[permanent]]
name = "eval-fixture-a"
body = { name = "x", size = { "$lookup" = "size" }, other = { "$permanent" = "gadgets/eval-fixture-b" } }
state = { open = true }
[[permanent]]
name = "eval-fixture-a"
"""
    write(tmp_path, widgets=GOOD % "" + permanents)
    lines = problems(tmp_path)
    for expected in (
        "permanent[0].name: is 'eval-widget'; must begin with eval-fixture-",
        "permanent[1].body.name: is taken from name",
        "there is no lookup 'size'",
        "refers to 'gadgets/eval-fixture-b', whose family is not in needs",
        "permanent[1].state.open: no set_state makes it True",
        "permanent[2].name: 'eval-fixture-a' stands twice",
    ):
        assert any(expected in line for line in lines), expected
    assert len(lines) == 6


def test_needs_must_exist_and_must_not_go_round(tmp_path: Path) -> None:
    write(tmp_path, a=GOOD % 'needs = ["b", "c"]', b=GOOD % 'needs = ["a"]')
    assert problems(tmp_path) == ["a.toml: needs: there is no family 'c' in this folder; add c.toml or remove it"]
    write(tmp_path, c=GOOD % "")
    (line,) = problems(tmp_path)
    assert re.search(r"needs go round: (a needs b needs a|b needs a needs b)", line)


def test_a_reference_must_name_a_permanent_fixture(tmp_path: Path) -> None:
    body = '[[permanent]]\nname = "eval-fixture-a"\nbody = { b = { "$permanent" = "b/eval-fixture-none" } }\n'
    write(tmp_path, a=GOOD % 'needs = ["b"]' + body, b=GOOD % "")
    assert problems(tmp_path) == [
        "a.toml: refers to 'b/eval-fixture-none'; b.toml has no permanent fixture 'eval-fixture-none'"
    ]


def test_a_broad_prefix_is_refused(tmp_path: Path) -> None:
    for prefix in ("", "-", "e-", "eval"):
        write(tmp_path, a=GOOD % f'prefix = "{prefix}"')
        assert "a.toml: prefix:" in problems(tmp_path)[0]


def test_variables_that_are_missing_are_listed_all(tmp_path: Path) -> None:
    text = GOOD % "" + '[headers]\nAuthorization = "Bearer ${TOKEN_A}"\nX-Key = "${TOKEN_B}-${TOKEN_C:-c}"\n'
    family = load_families(write(tmp_path, widgets=text)).by_name["widgets"]
    with pytest.raises(TwogateError) as caught:
        resolve_access(family, {})
    assert [re.findall("variable ([A-Z_]+) is not set", line) for line in caught.value.lines] == [
        ["WIDGETS_URL"],
        ["TOKEN_A"],
        ["TOKEN_B"],
    ]
    access = resolve_access(family, {"WIDGETS_URL": "http://u:pass-word@h/v1/", "TOKEN_A": "aaaaaa", "TOKEN_B": "b"})
    assert access.headers == {"Authorization": "Bearer aaaaaa", "X-Key": "b-c"}
    assert access.shown("widgets") == "http://h/v1/widgets"
    assert "pass-word" in access.secrets
    assert "aaaaaa" not in repr(access)


@pytest.mark.parametrize("address", ["h/v1", "ftp://h", "http://", "http://h?token=x", "http://[", "http://h#x"])
def test_an_address_that_cant_be_used_is_refused_before_any_request(tmp_path: Path, address: str) -> None:
    family = load_families(write(tmp_path, widgets=GOOD % "")).by_name["widgets"]
    with pytest.raises(TwogateError, match="base_url: the address is not of the form"):
        resolve_access(family, {"WIDGETS_URL": address})


def test_a_header_whose_variable_is_empty_is_left_out(tmp_path: Path) -> None:
    text = GOOD % "" + '[headers]\nAuthorization = "Bearer ${TOKEN_A:-}"\n'
    family = load_families(write(tmp_path, widgets=text)).by_name["widgets"]
    assert resolve_access(family, {"WIDGETS_URL": "http://h"}).headers == {}
