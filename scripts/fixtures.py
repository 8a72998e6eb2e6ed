"""Reset a product's state between stateful runs: ``python scripts/fixtures.py FAMILY seed|clean|status``.

The same as ``twogate fixtures``; families stand in ``fixtures/families/*.toml``.
"""

from __future__ import annotations

import sys

from evals.cli.main import main

if __name__ == "__main__":
    sys.argv[1:1] = ["fixtures"]
    main()
