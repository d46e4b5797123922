"""Anchors: what is asked of which environment. `tests/benchmarks/test_anchors.py` has real environments."""

from __future__ import annotations

from dataclasses import replace

from harness_trials import make_trial

from rnnbench.pipeline import Side, SideError, anchors, examine_with_anchors
from rnnbench.pipeline.environment_worker import EnvironmentFacts
from rnnbench.plan import examine, examine_all


def pinned(pins, **changes):
    return replace(make_trial(**changes), case="anchors", pinned=pins)


def environments(monkeypatch, *broken):
    """Gives every set of pins an environment but the broken ones. Returns what was asked of each."""
    asked = {}

    def open_side(pins, trials, folder):
        asked[pins] = trials
        if pins in broken:
            raise SideError(f"'{pins}': the environment could not be made")
        seen = tuple(examine_all(trials))
        return Side(pins, f"/{pins}/bin/python", EnvironmentFacts("", "3", {}, seen))

    monkeypatch.setattr(anchors, "open_side", open_side)
    return asked


def test_each_set_of_pins_is_one_environment_and_the_order_stays(monkeypatch, tmp_path):
    asked = environments(monkeypatch)
    trials = [pinned("fake==1", chunk=1), make_trial(), pinned("fake==2"), pinned("fake==1", chunk=4)]
    examined = examine_with_anchors(trials, tmp_path)
    assert [one.trial for one in examined] == trials
    assert [one.support.interpreter for one in examined] == [
        "/fake==1/bin/python",
        "",
        "/fake==2/bin/python",
        "/fake==1/bin/python",
    ]
    assert [one.failure for one in examined] == [None] * 4
    assert {pins: len(of) for pins, of in asked.items()} == {"fake==1": 2, "fake==2": 1}


def test_an_anchor_without_an_environment_is_unavailable_and_the_others_run(monkeypatch, tmp_path):
    environments(monkeypatch, "fake==9")
    broken, whole = examine_with_anchors([pinned("fake==9"), pinned("fake==1")], tmp_path)
    assert broken.failure.outcome == "unavailable"
    assert broken.failure.reason == (
        "no environment with its pinned versions: 'fake==9': the environment could not be made"
    )
    assert whole.failure is None


def test_the_running_environment_never_measures_an_anchor():
    assert "its versions are pinned (fake==1)" in examine(pinned("fake==1")).failure.reason
