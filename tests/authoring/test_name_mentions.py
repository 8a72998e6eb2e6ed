"""Names told from English: the table of docs/authoring.md, example by example."""

from __future__ import annotations

import pytest

from evals.authoring.mentions import NamedText, NameKind
from evals.authoring.text import parts


def weight(text: str, name: str, kind: NameKind = "tool", content: tuple[str, ...] = ()) -> int:
    mention = NamedText(text, content).mention(name, kind)
    return mention.weight if mention else 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("list_files", ("list", "files")),
        ("listFiles", ("list", "files")),
        ("LIST-FILES", ("list", "files")),
        ("ListHTTPFiles", ("list", "http", "files")),
        ("apify--rag.web_browser", ("apify", "rag", "web", "browser")),
        ("base64Decode", ("base64", "decode")),
        ("größeÄndern", ("grösseändern",)),
        ("__", ()),
    ],
)
def test_parts(name: str, expected: tuple[str, ...]) -> None:
    assert parts(name) == expected


@pytest.mark.parametrize(
    "text",
    [
        "use list_files",
        "`list_files`",
        "list-files, please",
        "Try listFiles.",
        "LIST_FILES",
        "list_files()",
        "call mcp__repository__list_files",
        "`list files` would do",
        "the list files tool",
        "the tool list files",
        "Use repository.list_files on the deploy folder",
        "Use repository/list_files, repository:list_files or mcp.repository.listFiles",
        "Run list_files—then tell me",
        "Run list_files–then tell me",
        "list_files…and then",
        "list_files...and then",
        "Take list_files.Then tell me",
        "Pick list_files|read_file",
        "Pick read_file&list_files",
        "read_file+list_files",
        "read_file→list_files",
        "**list_files**",
        "_list_files_",
        "«list_files»",
        "list_filesを使って",
        "list_files({})",
    ],
)
def test_a_tool_that_is_named_for_certain(text: str) -> None:
    assert weight(text, "list_files") >= 3


@pytest.mark.parametrize("text", ["use list files", 'with "list files" and "use"', "listfiles"])
def test_a_tool_that_is_probably_named(text: str) -> None:
    assert weight(text, "list_files") == 2


@pytest.mark.parametrize(
    "text",
    [
        "list the files",
        "list files in docs",
        "Which files does it list? Files matter.",
        "docs/list_files.py",
        "my_list_files",
        "a checklist, files",
        "list; files",
        "list—files",
        "my.list_files.md",
        "list_files_of.py",
        "blacklist.files",
    ],
)
def test_english_that_happens_to_hold_a_tools_name(text: str) -> None:
    assert weight(text, "list_files") <= 1


def test_a_name_that_is_one_ordinary_word() -> None:
    assert weight("search the code for TODO", "search") == 0
    assert weight("use search to find it", "search") == 1
    assert weight("use `search` to find it", "search") == 2
    assert weight("use the search tool", "search") == 3
    assert weight("where is the search function?", "search") == 2
    assert weight("call search()", "search") >= 3
    assert weight("call search(query)", "search") >= 3
    assert weight("how many search(es) were there?", "search") == 0
    assert weight("Which repository.search was it?", "search") == 0
    assert NamedText("Ask repository.search", (), ("repository",)).mention("search", "tool").weight == 3  # type: ignore[union-attr]


def test_three_words_in_a_row_are_rarely_chance() -> None:
    assert weight("ask the rag web browser", "rag-web-browser") == 2
    assert weight("open a web browser", "rag-web-browser") == 0


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("with context_lines 3", "context_lines", 3),
        ("with contextLines 3", "context_lines", 3),
        ("3 context lines", "context_lines", 0),
        ("a case-sensitive search", "case_sensitive", 1),
        ("limit=5", "limit", 3),
        ("limit = 5", "limit", 3),
        ("limit => 5", "limit", 3),
        ("?path=deploy&limit=5", "limit", 3),
        ("limit == 5", "limit", 0),
        ("limit =~ 5", "limit", 0),
        ('{"path": "deploy"}', "path", 3),
        ("{'path' : 'deploy'}", "path", 3),
        ("`path`: deploy", "path", 3),
        ("path: deploy", "path", 2),
        ("Look around, path: deploy", "path", 2),
        ("Look around with path: deploy", "path", 2),
        ("(path:deploy)", "path", 2),
        ("max results: 5", "max_results", 2),
        ("max_results: 5", "max_results", 5),
        ("Look at this path: deploy", "path", 0),
        ("Show the task: nightly-report", "task", 0),
        ("Title: Guests for Friday", "title", 0),
        ("Which path:", "path", 0),
        ("path://x", "path", 0),
        ("Open https://example.com/list?path=a&limit=5", "limit", 0),
        ("if limit==5", "limit", 0),
        ("--limit 5", "limit", 3),
        ("limit it to 5", "limit", 0),
        ("the limit parameter", "limit", 3),
        ("set the title field", "title", 1),
        ("the `title`", "title", 1),
        ("the `title` option", "title", 3),
    ],
)
def test_parameters(text: str, name: str, expected: int) -> None:
    assert weight(text, name, "parameter") == expected


def test_families() -> None:
    assert weight("show my schedules", "schedules", "family") == 0
    assert weight("use the schedules toolset", "schedules", "family") == 3
    assert weight("ask the MCP schedules", "schedules", "family") == 3
    assert weight("with web-search", "web-search", "family") == 3


def test_what_the_user_asks_about_is_no_hint() -> None:
    text = "Who calls list_files in the code?"
    assert weight(text, "list_files") == 3
    assert weight(text, "list_files", content=("list_files(",)) == 0


def test_the_words_shown_are_those_of_the_text() -> None:
    mention = NamedText("Please use the LIST files Tool.").mention("list_files", "tool")
    assert mention is not None
    assert mention.words == "LIST files Tool"
