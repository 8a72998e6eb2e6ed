"""Reset the schedules that cases work on: ``python scripts/schedules_fixtures.py seed|clean|status``.

The same as ``twogate fixtures schedules``; the family is described in ``fixtures/families/schedules.toml``.
"""

from __future__ import annotations

import sys

from evals.cli.main import main

if __name__ == "__main__":
    sys.argv[1:1] = ["fixtures", "schedules"]
    main()
