"""Reset the tasks that cases work on: ``python scripts/tasks_fixtures.py seed|clean|status``.

The same as ``twogate fixtures tasks``; the family is described in ``fixtures/families/tasks.toml``.
"""

from __future__ import annotations

import sys

from evals.cli.main import main

if __name__ == "__main__":
    sys.argv[1:1] = ["fixtures", "tasks"]
    main()
