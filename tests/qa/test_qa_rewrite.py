"""The new file of `twogate qa solve`: proposals in place, all else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.qa.file import parse_qa
from evals.qa.solve import Advice, Solved, SolvedPair, rewrite

PATH = Path("q.xml")
TEXT = """<?xml version="1.0" encoding="iso-8859-1"?>
<!-- kept -->
<evaluation>
  <qa_pair id="1"><question>Who is é?</question>
    <answer kind="a > b">
      old &amp; é
    </answer></qa_pair>
  <qa_pair><note>n</note><answer><![CDATA[b]]></answer ><question>Which?</question></qa_pair>
</evaluation>
"""


def proposed(number: int, answer: str, advice: Advice = "proposed", tools: tuple[str, ...] = ()) -> SolvedPair:
    pair = parse_qa(TEXT.encode("iso-8859-1"), PATH).pairs[number - 1]
    return SolvedPair(pair, advice, (answer, answer), 2, tools)


def test_a_proposal_stands_in_place_with_a_comment_and_the_rest_stays() -> None:
    file = parse_qa(TEXT.encode("iso-8859-1"), PATH)
    written = rewrite(file, [proposed(1, "new <x> & ü"), proposed(2, "b", "confirmed")])
    text = written.decode()
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<!-- kept -->\n')
    assert '<answer kind="a > b">new &lt;x&gt; &amp; ü</answer> <!-- solve: pair 1 (line 4): ' in text
    assert "<note>n</note><answer><![CDATA[b]]></answer ><question>" in text
    assert [pair.answer for pair in parse_qa(written, PATH).pairs] == ["new <x> & ü", "b"]


def test_a_flag_is_a_comment_that_changes_no_answer() -> None:
    file = parse_qa(TEXT.encode("iso-8859-1"), PATH)
    written = rewrite(file, [proposed(2, "b", "confirmed", ("write",))])
    assert b"</answer > <!-- solve: pair 2 (line 8): confirmed" in written
    assert b"called write, not marked read-only -->" in written
    assert [pair.answer for pair in parse_qa(written, PATH).pairs] == ["old & é", "b"]


@pytest.mark.parametrize("answer", ["--", "a--b---c", "-->", "]]>", "ends -", "a\rb", "a\r\nb"])
def test_no_answer_breaks_the_file(answer: str) -> None:
    file = parse_qa(TEXT.encode("iso-8859-1"), PATH)
    assert parse_qa(rewrite(file, [proposed(1, answer)]), PATH).pairs[0].answer == answer


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=20))
def test_any_answer_reads_back(answer: str) -> None:
    answer = f"q{answer}q"  # an answer made of dots or the like would be a placeholder, which is refused
    file = parse_qa(TEXT.encode("iso-8859-1"), PATH)
    assert parse_qa(rewrite(file, [proposed(1, answer)]), PATH).pairs[0].answer == answer


def test_a_comment_holds_only_what_xml_can() -> None:
    file = parse_qa(TEXT.encode("iso-8859-1"), PATH)
    written = rewrite(file, [proposed(1, "bell\x07", "declined", ("ring\x07\ufffe",))])
    assert [pair.answer for pair in parse_qa(written, PATH).pairs] == ["old & é", "b"]
    assert "no answer for a file: 'bell\\x07' has characters that no XML file can hold" in written.decode()
    assert Solved((), written).mistakes(PATH) == []


def test_a_new_file_that_cannot_be_read_is_found_before_it_is_written() -> None:
    (line,) = Solved((), b"<evaluation>\x07</evaluation>").mistakes(PATH)
    assert line.startswith("q.xml: is not XML")
