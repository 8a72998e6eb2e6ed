from __future__ import annotations

from pathlib import Path

import pytest
from lab import REPOSITORY_TARGET, Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """An empty lab with the repository server as its target."""
    created = Lab(tmp_path)
    created.target(REPOSITORY_TARGET)
    return created
