#!/usr/bin/env python3
"""Write a dataset as a file for people and git: ``python scripts/export_dataset.py --dataset NAME -o FILE``.

The same as ``twogate items export``, for those who keep their tools in scripts/. No run ever reads the file.
"""

from __future__ import annotations

from evals.cli.items import export
from evals.cli.main import run_command

if __name__ == "__main__":
    run_command(export)
