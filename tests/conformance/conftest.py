"""Reference trajectories that tests share, as the trials of a run do, and checks of few turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from few_turns import set_turns


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their folder. Each file is named by all that its trajectory depends on, and every test reads it anew."""
    return tmp_path_factory.mktemp("references")


@pytest.fixture
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks that have a time of their own make few turns. `test_suite.py` has them as they are."""
    set_turns(monkeypatch)
