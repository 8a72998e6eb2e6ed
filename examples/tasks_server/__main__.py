"""``python -m examples.tasks_server``, or the path of this file from any folder."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Run by path: the interpreter put this folder first, whose modules are no top-level ones.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.tasks_server.cli import main

if __name__ == "__main__":
    main(prog_name="tasks-server")
