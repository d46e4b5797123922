"""Wall time is booked where it was spent, and what is left over is the suite's."""

from __future__ import annotations

import time

import pytest

from rnnbench.run.account import Account, describe_seconds


def test_time_is_booked_under_its_name_even_where_the_work_raises():
    account = Account()
    with account.spent("build"):
        time.sleep(0.01)
    with pytest.raises(ZeroDivisionError), account.spent("build"):
        _sleep_and_fail(0.01)
    seconds = account.seconds()
    assert seconds["build"] >= 0.02
    assert seconds["total"] >= seconds["build"]


def _sleep_and_fail(seconds):
    time.sleep(seconds)
    raise ZeroDivisionError


def test_the_suites_share_is_what_neither_trials_nor_imports_took():
    text = describe_seconds({"total": 110.0, "build": 50.0, "check": 30.0, "sample": 20.0, "import": 8.0})
    assert "imports 8 s" in text
    assert "suite 2.0 s" in text
    assert "10% of theirs" in text


def test_a_run_in_which_no_trial_spent_anything_says_so_without_a_share():
    assert "%" not in describe_seconds({"total": 0.5})
