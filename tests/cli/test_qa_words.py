"""The command line of `twogate qa`: every order of options and file that is documented."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from evals.cli.main import cli
from evals.cli.qa import run


def parse(line: str) -> dict[str, Any]:
    return run.make_context("qa", shlex.split(line)).params


EXPECTED: dict[str, Any] = {
    "-t stdio -c python -a my_server.py evaluation.xml": {
        "transport": "stdio", "command": "python", "args": ("my_server.py",),
    },
    "evaluation.xml -t stdio -c python -a my_server.py": {"args": ("my_server.py",)},
    "-t stdio evaluation.xml -c python -a my_server.py": {"args": ("my_server.py",), "command": "python"},
    "-t stdio -c python -a server.py -e A=1 -e B=2 evaluation.xml": {
        "args": ("server.py",), "env": (("A", "1"), ("B", "2")),
    },
    "-t stdio -c python -a server.py -e API_KEY=abc DEBUG=true evaluation.xml": {
        "env": (("API_KEY", "abc"), ("DEBUG", "true")),
    },
    "-e A=1 B=2 -t stdio -c python -a server.py evaluation.xml": {
        "env": (("A", "1"), ("B", "2")), "args": ("server.py",),
    },
    "evaluation.xml -c npx -a=-y -a some-server /tmp": {"args": ("-y", "some-server", "/tmp")},
    "evaluation.xml -c npx --args=-y --args some-server": {"args": ("-y", "some-server")},
    "-c python -a server.py -a two three evaluation.xml": {"args": ("server.py", "two", "three")},
    "evaluation.xml -c python -a -- -m server --port 1": {"args": ("-m", "server", "--port", "1")},
    "-c python -a -- -m server evaluation.xml": {"args": ("-m", "server")},
    "-c python -a=-m -a server -- evaluation.xml": {"args": ("-m", "server")},
    "evaluation.xml -c python -a server.py data.xml": {"args": ("server.py", "data.xml")},
    "-c python -a server.py data.xml -m claude-haiku-4-5 evaluation.xml": {
        "args": ("server.py", "data.xml"), "model": "claude-haiku-4-5",
    },
    "-c python -a server.py -1 - evaluation.xml": {"args": ("server.py", "-1", "-")},
    "-c python -aserver.py evaluation.xml": {"args": ("server.py",)},
    "-c python -a server.py -t=stdio -o=report.md evaluation.xml": {"transport": "stdio", "output": Path("report.md")},
    "evaluation.xml -t sse -u https://x.example/sse -H 'Authorization: Bearer x'": {
        "transport": "sse", "url": "https://x.example/sse", "headers": (("Authorization", "Bearer x"),),
    },
    "-t http -u https://x.example/mcp -H 'A: 1' 'B: 2:3' evaluation.xml": {"headers": (("A", "1"), ("B", "2:3"))},
    "-t http -u https://x.example/mcp -H 'A: 1' -H 'B: 2' evaluation.xml --max-turns 3": {
        "headers": (("A", "1"), ("B", "2")), "max_turns": 3,
    },
    "-e TEXT='a=b c' EMPTY= -c python -a server.py evaluation.xml": {"env": (("TEXT", "a=b c"), ("EMPTY", ""))},
    "-e A=1 evaluation.xml -c python -a server.py data.xml": {"env": (("A", "1"),), "args": ("server.py", "data.xml")},
    "-e A=1 -c python -a server.py data.xml -e B=data.xml evaluation.xml -e C=3": {
        "env": (("A", "1"), ("B", "data.xml"), ("C", "3")), "args": ("server.py", "data.xml"),
    },
    "-e X=data.xml -c python -a server.py evaluation.xml": {"env": (("X", "data.xml"),), "args": ("server.py",)},
    "-t http -u https://x.example/mcp -H 'A: b.xml' evaluation.xml -m claude-haiku-4-5": {"headers": (("A", "b.xml"),)},
    "-c python -a server.py Evaluation.XML": {"args": ("server.py",), "file": Path("Evaluation.XML")},
}  # fmt: skip


@pytest.mark.parametrize("line", EXPECTED)
def test_an_order_of_words(line: str) -> None:
    found = parse(line)
    wanted = {"file": Path("evaluation.xml"), **EXPECTED[line]}
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-c python -a server.py", "Missing argument 'FILE'"),
        ("evaluation.xml -c python -a -m server", "-a needs at least one value; one that starts with a dash is"),
        ("evaluation.xml -c python -a", "-a needs at least one value"),
        ("evaluation.xml -c python -a server.py --itertions 3", "No such option '--itertions'"),
        ("evaluation.xml -c python -e A", "'A' is no variable; write KEY=VALUE"),
        ("evaluation.xml -c python -e other.xml", "'other.xml' is no variable; write KEY=VALUE"),
        ("-c python -e one.xml two.xml", "'one.xml' is no variable"),
        ("evaluation.xml -c python -e A=1 =2", "'' is no variable"),
        ("evaluation.xml -c python -e '1A=2'", "'1A' is no name of a variable"),
        ("evaluation.xml -t sse -u http://x -H Authorization", "'Authorization' is no header; write 'Key: Value'"),
        ("evaluation.xml -t sse -u http://x -H 'Two Words: x'", "'Two Words' is no name of a header"),
        ("evaluation.xml -t sse -u http://x -H 'A:'", "the header 'A' has no value"),
        ("evaluation.xml other.xml", "unexpected extra argument"),
        ("evaluation.xml -t carrier-pigeon", "'carrier-pigeon' is not one of 'stdio', 'sse', 'http'"),
        ("evaluation.xml --pass-threshold 90", "90 is outside 0 to 1"),
    ],
)
def test_a_mistake_of_usage(line: str, says: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        parse(line)
    assert says in caught.value.format_message()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-t stdio", "--transport stdio, --args and --env need --command"),
        ("-t sse", "--transport sse needs --url"),
        ("-t http -c python", "--transport http needs --url; --command, --args and --env go with --transport stdio"),
        ("-t stdio -u http://x.example", "--url does not go with --transport stdio; use -t http or -t sse"),
        ("-c python -u http://x.example", "--command and --url are two servers; give one"),
        ("-c python -H 'A: 1'", "--header goes with --url only"),
        ("-u x.example/mcp", "--url 'x.example/mcp' must start with http:// or https://"),
        ("-a server.py", "need --command"),
        ("--target twogate.toml -c python", "--target names the servers itself"),
    ],
)
def test_what_does_not_go_together_is_a_mistake_of_usage(line: str, says: str) -> None:
    result = CliRunner().invoke(cli, ["qa", "evaluation.xml", *shlex.split(line)])
    assert result.exit_code == 2
    assert says in result.output


def test_a_first_word_that_is_no_subcommand_begins_a_run() -> None:
    runner = CliRunner()
    assert "Missing argument 'FILE'" in runner.invoke(cli, ["qa", "-t", "stdio"]).output
    assert "Missing argument 'FILE'" in runner.invoke(cli, ["qa", "lint"]).output
    assert "Missing argument 'FILE'" in runner.invoke(cli, ["qa", "solve"]).output


def test_help_shows_the_options_of_a_run_and_the_other_subcommands() -> None:
    result = CliRunner().invoke(cli, ["qa", "--help"])
    assert result.exit_code == 0
    for word in ("-t, --transport", "-H, --header", "--pass-threshold", "lint", "solve", "FILE [OPTIONS]"):
        assert word in result.output
