"""Evaluate an MCP server with a question file: ``twogate qa`` under the name and options its users know.

python scripts/evaluation.py -t stdio -c python -a my_server.py evaluation.xml
python scripts/evaluation.py evaluation.xml -t sse -u https://example.com/sse -H "Authorization: Bearer x"
python scripts/evaluation.py -t http -u https://example.com/mcp -m claude-sonnet-5 -o report.md evaluation.xml
python scripts/evaluation.py -t stdio -c python -a server.py -e API_KEY=abc DEBUG=true evaluation.xml
"""

from __future__ import annotations

from evals.cli.main import run_command
from evals.cli.qa import run

if __name__ == "__main__":
    run_command(run, prog_name="evaluation.py", help_option_names=["-h", "--help"])
