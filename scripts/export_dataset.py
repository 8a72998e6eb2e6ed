#!/usr/bin/env python3
"""Write a dataset as a file for people and git: ``python scripts/export_dataset.py --dataset NAME -o FILE``.

The same as ``twogate items export``, for those who keep their tools in scripts/. No run ever reads the file.
"""

from __future__ import annotations

import sys

from evals.cli.items import export
from evals.errors import TwogateError

if __name__ == "__main__":
    try:
        export()
    except TwogateError as error:
        for line in error.lines:
            sys.stderr.write(f"error: {line}\n")
        raise SystemExit(1) from None
