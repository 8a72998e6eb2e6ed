"""Every way a command can end has its exit code and its one line; none is a traceback."""

from __future__ import annotations

import click
import pytest

from evals.cli.main import run_command
from evals.errors import TwogateError


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (None, 0, ""),
        (SystemExit(1), 1, ""),
        (click.exceptions.Exit(3), 3, ""),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
        (EOFError(), 1, "error: the input ended\n"),
        (TwogateError(["one", "two"]), 1, "error: one\nerror: two\n"),
        (click.UsageError("--a and --b do not go together"), 2, "Error: --a and --b do not go together\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_a_command_ends_with_its_exit_code_and_its_line(
    raised: BaseException | None, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def command() -> None:
        if raised is not None:
            raise raised

    with pytest.raises(SystemExit) as ended:
        run_command(command, args=[], prog_name="twogate")
    assert (ended.value.code or 0) == code
    assert capsys.readouterr().err.strip("\n").endswith(said.strip("\n"))
