"""Objects that were frozen before a check stay frozen after it, and others are free again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from rnnbench.conformance import garbage
from rnnbench.conformance.garbage import freeze_for_good, only_new_garbage


@pytest.fixture(autouse=True)
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(garbage, "_frozen_for_good", False)
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_a_check_freezes_what_is_there_and_unfreezes_it() -> None:
    with only_new_garbage():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_what_somebody_froze_before_stays_frozen() -> None:
    gc.freeze()
    with only_new_garbage():
        pass
    assert gc.get_freeze_count() > 0


def test_what_is_frozen_for_good_stays_so_and_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    freeze_for_good()
    with monkeypatch.context() as counting:
        counting.setattr(gc, "get_freeze_count", lambda: pytest.fail("counting visits every object"))
        with only_new_garbage():
            pass
    assert gc.get_freeze_count() > 0
