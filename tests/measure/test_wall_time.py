"""Wall time is counted for what it was spent on. The rest is the suite's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rnnbench.measure import wall_time as module
from rnnbench.measure.wall_time import WallTime, describe_seconds


def test_seconds_are_counted_under_their_name_even_where_the_work_raises(monkeypatch):
    readings = iter([0.0, 1.0, 3.0, 4.0, 9.0, 10.0])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=readings.__next__))
    wall_time = WallTime()
    with wall_time.spent_on("build"):
        pass
    with pytest.raises(ZeroDivisionError), wall_time.spent_on("build"):
        raise ZeroDivisionError
    assert wall_time.seconds() == {"total": 10.0, "build": 2.0 + 5.0}


def test_the_suite_s_share_is_what_neither_trials_nor_imports_took():
    text = describe_seconds({"total": 110.0, "build": 50.0, "check": 30.0, "sample": 20.0, "import": 8.0})
    assert "imports added 8 s" in text
    assert "the suite 2.0 s" in text
    assert "10 % of the trials' time" in text


def test_a_run_whose_trials_spent_nothing_has_no_share():
    assert "%" not in describe_seconds({"total": 0.5})


def test_seconds_that_were_measured_elsewhere_are_added():
    wall_time = WallTime()
    wall_time.add("reference", 1.5)
    wall_time.add("reference", 1.0)
    assert wall_time.seconds()["reference"] == 2.5
