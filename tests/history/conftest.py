"""One database writes the files of rows of all histories."""

from __future__ import annotations

import made_history
import pytest

from rnnbench.results import tables


@pytest.fixture(autouse=True)
def shared_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "open_database", made_history.shared_database)
