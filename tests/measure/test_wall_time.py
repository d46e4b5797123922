"""Wall time is booked where it was spent, and what is left over is the suite's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rnnbench.run import account as room
from rnnbench.run.account import Account, describe_seconds


def test_time_is_booked_under_its_name_even_where_the_work_raises(monkeypatch):
    readings = iter([0.0, 1.0, 3.0, 4.0, 9.0, 10.0])
    monkeypatch.setattr(room, "time", SimpleNamespace(monotonic=readings.__next__))
    account = Account()
    with account.spent("build"):
        pass
    with pytest.raises(ZeroDivisionError), account.spent("build"):
        raise ZeroDivisionError
    assert account.seconds() == {"total": 10.0, "build": 2.0 + 5.0}


def test_the_suites_share_is_what_neither_trials_nor_imports_took():
    text = describe_seconds({"total": 110.0, "build": 50.0, "check": 30.0, "sample": 20.0, "import": 8.0})
    assert "imports 8 s" in text
    assert "suite 2.0 s" in text
    assert "10% of theirs" in text


def test_a_run_in_which_no_trial_spent_anything_says_so_without_a_share():
    assert "%" not in describe_seconds({"total": 0.5})
