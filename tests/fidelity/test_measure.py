"""A verdict on fidelity, and a whole measurement of a backend without a tool of its own."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from rnnbench.cases.trial import Target
from rnnbench.run import fidelity
from rnnbench.run.fidelity import Fidelity, measure

FIGURE = Fidelity("fake:honest", "looped-stitched", 32, "a tool", bound=104e-6, own=100e-6, empty=1e-6, ratio=1.04)


def test_longer_calls_hold_by_their_ratio() -> None:
    assert FIGURE.verdict == "holds"
    assert replace(FIGURE, ratio=1.06).verdict == "too far"


def test_single_steps_hold_by_an_empty_call_and_a_share() -> None:
    single = replace(FIGURE, chunk=1, own=20e-6, empty=2e-6, swept=9e-6, ratio=1.2)
    assert replace(single, difference=2.9e-6).verdict == "holds"
    assert replace(single, difference=3.1e-6).verdict == "too far"


def test_a_tool_that_is_slower_by_as_much_is_no_proof() -> None:
    assert replace(FIGURE, ratio=0.94).verdict == "tool slower"
    single = replace(FIGURE, chunk=1, own=20e-6, empty=2e-6, swept=9e-6, ratio=0.8)
    assert replace(single, difference=-3.1e-6).verdict == "tool slower"
    assert replace(single, difference=-2.9e-6).verdict == "holds"


def test_a_verdict_is_open_while_the_interval_has_a_limit_in_it() -> None:
    assert not replace(FIGURE, interval=None).is_open
    assert not replace(FIGURE, interval=(1.03, 1.049)).is_open
    assert replace(FIGURE, interval=(1.03, 1.06)).is_open
    assert replace(FIGURE, interval=(0.94, 1.0)).is_open
    assert not replace(FIGURE, interval=(1.06, 1.08)).is_open
    assert not replace(FIGURE, chunk=1, interval=(1.03, 1.059)).is_open


def test_what_was_not_timed_has_no_verdict() -> None:
    assert replace(FIGURE, untimed="no tool").verdict is None


def test_a_ratio_is_the_median_of_processes_with_their_interval() -> None:
    """One process of four is disturbed in most of its turns, another in one of them."""
    calm, disturbed = [1.02, 1.0, 0.1, 0.2], [3.0, 1.0, 0.1, 0.2]
    processes = [[calm] * 3, [calm] * 3, [calm, calm, disturbed], [calm, disturbed, disturbed]]
    found = fidelity._summed(FIGURE, processes)
    assert found.ratio == pytest.approx(1.02)
    assert found.difference == pytest.approx(0.02)
    assert (found.empty, found.swept) == (0.1, 0.2)
    assert found.interval is not None
    assert found.interval[0] < found.ratio < found.interval[1]
    assert fidelity._summed(FIGURE, processes[:1]).interval is None


@pytest.mark.parametrize(("ratios", "processes"), [((1.0, 1.01), fidelity.PROCESSES), ((0.9, 1.2), fidelity.MOST)])
def test_more_processes_are_added_while_the_verdict_is_open(
    monkeypatch: pytest.MonkeyPatch, ratios: tuple[float, ...], processes: int
) -> None:
    jobs = []
    ratio = cycle(ratios)

    def run(job: dict[str, Any], *_: object) -> dict[str, Any]:
        jobs.append(job["rounds"])
        return {"tool": "a fake tool", "note": "", "rounds": [[next(ratio), 1.0, 0.0, 0.0]] * job["rounds"]}

    monkeypatch.setattr(fidelity, "_run", run)
    (figure,) = measure([Target("numpy", "eager")], (2,))
    assert jobs == [0, *[fidelity.ROUNDS] * processes]
    assert figure.is_open == (processes == fidelity.MOST)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROCESSES": 2, "ROUNDS": 2, "PIECE_S": 0.01}.items():
        monkeypatch.setattr(fidelity, name, value)


def test_a_backend_without_a_tool_says_so(short: None) -> None:
    (figure,) = measure([Target("numpy", "eager")], (2,))
    assert figure.verdict is None
    assert "knows of no tool" in figure.untimed


def test_a_process_that_dies_is_told_of(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (figure,) = measure([Target("numpy", "eager")], (2,))
    assert "status 1" in figure.untimed
