"""Reference trajectories that tests share, as the trials of a run do."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their folder. Each file is named by all that its trajectory depends on, and every test reads it anew."""
    return tmp_path_factory.mktemp("references")
