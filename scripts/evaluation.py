"""Evaluate an MCP server with a question file: ``twogate qa`` under the name and options its users know.

python scripts/evaluation.py -t stdio -c python -a my_server.py evaluation.xml
python scripts/evaluation.py evaluation.xml -t sse -u https://example.com/sse -H "Authorization: Bearer x"
python scripts/evaluation.py -t http -u https://example.com/mcp -m claude-sonnet-5 -o report.md evaluation.xml
python scripts/evaluation.py -t stdio -c python -a server.py -e API_KEY=abc DEBUG=true evaluation.xml
"""

from __future__ import annotations

import click

from evals.cli.qa import run
from evals.errors import TwogateError


def main() -> None:
    """Entry point: a `TwogateError` ends as its lines on standard error and exit code 1."""
    try:
        run(prog_name="evaluation.py", help_option_names=["-h", "--help"])
    except TwogateError as error:
        for line in error.lines:
            click.echo(f"error: {line}", err=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
