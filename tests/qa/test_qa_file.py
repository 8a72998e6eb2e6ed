"""The question file: what is read, what is kept out, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.errors import TwogateError
from evals.qa.file import is_placeholder, load_qa, parse_qa

PATH = Path("questions.xml")


def pair(question: str, answer: str) -> str:
    return f"<qa_pair><question>{question}</question><answer>{answer}</answer></qa_pair>"


def evaluation(*pairs: str) -> str:
    return f"<evaluation>{''.join(pairs)}</evaluation>"


def read(text: str, encoding: str = "utf-8") -> list[tuple[str, str]]:
    return [(one.question, one.answer) for one in parse_qa(text.encode(encoding), PATH).pairs]


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        parse_qa(text if isinstance(text, bytes) else text.encode(), PATH)
    return caught.value.lines


def test_pairs_are_numbered_in_order() -> None:
    file = parse_qa(evaluation(pair("Which one?", "a"), pair("Which two?", "b")).encode(), PATH)
    assert [(one.number, one.question, one.answer) for one in file.pairs] == [
        (1, "Which one?", "a"),
        (2, "Which two?", "b"),
    ]
    assert file.notes == ()


def test_white_space_around_is_trimmed_and_inside_kept() -> None:
    text = evaluation(pair("\n    Which\n    lines?  ", "\t a  b \n"))
    assert read(text) == [("Which\n    lines?", "a  b")]


def test_comments_and_cdata_are_read_as_xml_says() -> None:
    text = (
        "<?xml version='1.0'?><!-- a file --><evaluation><!-- a pair -->"
        + pair("Is <!-- not -->it <![CDATA[a < b && c]]>?", "<![CDATA[ <none> ]]>")
        + "</evaluation><!-- end -->"
    )
    assert read(text) == [("Is it a < b && c?", "<none>")]


def test_character_references_and_the_five_entities() -> None:
    assert read(evaluation(pair("a &amp; b &lt;c&gt; &#233;?", "&quot;&apos;"))) == [("a & b <c> é?", "\"'")]


def test_windows_line_ends_become_plain_ones() -> None:
    assert read(evaluation(pair("one\r\ntwo?", "a\r\n"))) == [("one\ntwo?", "a")]


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso-8859-1", "windows-1252", "iso-8859-2"],
)
def test_encodings_by_mark_or_declaration(encoding: str) -> None:
    name = {"utf-8-sig": "utf-8", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}.get(encoding, encoding)
    text = f"<?xml version='1.0' encoding='{name}'?>" + evaluation(pair("Who is é?", "Dvořák" if "2" in name else "é"))
    if encoding in ("iso-8859-1", "windows-1252"):
        text = text.replace("Dvořák", "é")
    assert read(text, encoding)[0][0] == "Who is é?"


@pytest.mark.parametrize("encoding", ["shift_jis", "gbk", "euc-jp", "koi8-r"])
def test_declared_encodings_expat_itself_does_not_know(encoding: str) -> None:
    letter = "Ж"
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + evaluation(pair(f"Which letter is {letter}?", letter))
    assert read(text, encoding) == [(f"Which letter is {letter}?", letter)]


def test_a_mark_wins_over_the_declaration() -> None:
    text = '<?xml version="1.0" encoding="iso-8859-1"?>' + evaluation(pair("é?", "é"))
    assert read(text, "utf-8-sig") == [("é?", "é")]


def test_an_encoding_that_does_not_fit_is_one_line() -> None:
    assert "is not utf-8 text at byte" in problems(evaluation(pair("é?", "é")).encode("latin-1"))[0]
    assert "'klingon', which is not known" in problems('<?xml version="1.0" encoding="klingon"?><evaluation/>')[0]
    # A codec that is no text encoding.
    assert len(problems('<?xml version="1.0" encoding="base64"?><evaluation/>')) == 1


def test_what_the_format_does_not_know_is_kept_out_and_said_once() -> None:
    text = (
        '<evaluation version="2" xmlns="urn:x"><author>me</author>'
        + '<qa_pair id="1" level="hard"><question lang="en">Which?</question><answer>a</answer>'
        + "<notes>n</notes></qa_pair>"
        + '<qa_pair id="2"><notes><b>no</b></notes><question>Who?</question><answer>b</answer></qa_pair>'
        + "stray</evaluation>"
    )
    file = parse_qa(text.encode(), PATH)
    assert [(one.question, one.answer) for one in file.pairs] == [("Which?", "a"), ("Who?", "b")]
    assert file.notes == (
        "questions.xml: elements that are not of the format are left out: <author> (1), <notes> (2)",
        "questions.xml: attributes are left out: id (2), lang (1), level (1), version (1)",
        "questions.xml: text outside questions and answers is left out: line 1",
    )


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        (f"<section>{pair('Who?', 'b')}</section>", "<qa_pair> stands in <section>, where it would not be read"),
        (f"<a><b>{pair('Who?', 'b')}</b></a>", "<qa_pair> stands in <b>"),
        (f"<qa_pair>{pair('Who?', 'b')}</qa_pair>", "<qa_pair> stands in <qa_pair>"),
        (pair("Who?", "b").replace("qa_pair", "QA_Pair"), "<QA_Pair> is not <qa_pair>; write it so"),
        ("<qa_pair><Question>Who?</Question><answer>b</answer></qa_pair>", "<Question> is not <question>"),
        ("<qa_pair><q><question>Who?</question></q><answer>b</answer></qa_pair>", "<question> stands in <q>"),
        ("<pair><question>Who?</question><answer>b</answer></pair>", "<answer> stands in <pair>"),
        ("<question>Who?</question><answer>b</answer>", "<answer> stands in <evaluation>, where it would not be read"),
    ],
)
def test_a_pair_that_would_be_left_out_is_an_error(inside: str, says: str) -> None:
    lines = problems(evaluation(pair("Which?", "a"), inside))
    assert any(line.startswith("questions.xml: line 1: ") and says in line for line in lines), lines
    assert problems(evaluation(inside)), "without any other pair it is one too"


def test_an_element_inside_a_text_is_refused_for_it_would_maim_the_question() -> None:
    (line,) = problems(evaluation(pair("What does <code>x</code> do?", "a")))
    assert line == (
        "questions.xml: pair 1 (line 1): question: holds the element <code> (line 1); "
        "write < as &lt;, or put the text in CDATA"
    )


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
    + evaluation(pair("&i;", "&i;"))
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE e [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + evaluation(pair("&x;", "a")),
        '<!DOCTYPE e [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>' + evaluation(pair("q", "a")),
        '<!DOCTYPE evaluation SYSTEM "evaluation.dtd">' + evaluation(pair("q", "a")),
    ],
    ids=["bomb", "external", "parameter", "subset"],
)
def test_no_document_type_is_ever_read(text: str) -> None:
    (line,) = problems(text)
    assert "document type declaration" in line
    assert "remove <!DOCTYPE" in line


def test_nesting_without_end_is_no_crash() -> None:
    depth = 100_000
    text = "<evaluation>" + "<a>" * depth + "</a>" * depth + pair("Which?", "a") + "</evaluation>"
    assert read(text) == [("Which?", "a")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        (" \n ", "is empty"),
        ("<evaluation/>", "has no pairs"),
        ("<evaluation><qa_pair>", "is not XML: no element found at line 1"),
        ("<evaluation><qa_pair></evaluation>", "is not XML: mismatched tag"),
        (evaluation(pair("a & b?", "x")), "write & as &amp;"),
        (evaluation(pair("a&nbsp;b?", "x")), "is not XML: undefined entity"),
        ("<tests>" + pair("q", "a") + "</tests>", "its root element is <tests>"),
        ("just text", "is not XML"),
    ],
)
def test_a_file_that_is_none_is_one_line(text: str, says: str) -> None:
    (line,) = problems(text)
    assert says in line
    assert line.startswith("questions.xml: ")


def test_every_problem_of_every_pair_at_once() -> None:
    lines = problems(
        "<evaluation>\n"
        "<qa_pair><question>Which?</question></qa_pair>\n"
        "<qa_pair><answer>a</answer></qa_pair>\n"
        "<qa_pair><question> </question><answer></answer></qa_pair>\n"
        "<qa_pair><question>Which?</question><answer>TODO</answer></qa_pair>\n"
        "<qa_pair><question>Fine?</question><answer>a</answer></qa_pair>\n"
        "<qa_pair><question>One?</question><question>Two?</question><answer>a</answer></qa_pair>\n"
        "<qa_pair/>\n"
        "</evaluation>"
    )
    assert lines == [
        "questions.xml: pair 1 (line 2): answer: is missing; add <answer>…</answer>",
        "questions.xml: pair 2 (line 3): question: is missing; add <question>…</question>",
        "questions.xml: pair 3 (line 4): question: is empty; write it",
        "questions.xml: pair 3 (line 4): answer: is empty; write it",
        "questions.xml: pair 4 (line 5): answer: is the placeholder 'TODO'; write the real one",
        "questions.xml: pair 6 (line 7): question: stands 2 times; keep one",
        "questions.xml: pair 7 (line 8): question: is missing; add <question>…</question>",
        "questions.xml: pair 7 (line 8): answer: is missing; add <answer>…</answer>",
    ]


@pytest.mark.parametrize(
    "text",
    "TODO|todo: ask Ada|TBD|...|…|???|____|[answer]|<your answer here>|answer here|Your answer|[...]|{answer}|"
    "FIXME|Insert answer here|placeholder|[TODO]|to be determined".split("|"),
)
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    "42|?|*|;|--|a|Todoist|Toledo|[draft]|{id}|<div>|The answer is 42|TODO comments: how many are there?|none|N/A|0|"
    "question mark|Answer engine".split("|"),
)
def test_answers_that_only_look_like_placeholders(text: str) -> None:
    assert not is_placeholder(text)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TwogateError, match="cannot be read: No such file"):
        load_qa(tmp_path / "none.xml")
    with pytest.raises(TwogateError, match="cannot be read: Is a directory"):
        load_qa(tmp_path)


def test_the_answer_is_found_in_the_source() -> None:
    text = evaluation('<qa_pair><question>é?</question><answer note="a > b"> <![CDATA[x]]> </answer></qa_pair>')
    file = parse_qa(text.encode(), PATH)
    start, end = file.pairs[0].answer_span
    assert file.source[start:end] == b" <![CDATA[x]]> "


@given(st.binary(max_size=200))
def test_any_bytes_end_as_pairs_or_as_lines(data: bytes) -> None:
    lines: list[str] = []
    try:
        parse_qa(data, PATH)
    except TwogateError as error:
        lines = error.lines
    assert all(line.startswith("questions.xml: ") for line in lines)
