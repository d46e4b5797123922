"""The verdict on fidelity, and a whole measurement of a backend whose runtime has no tool."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import cycle

import pytest

from rnnbench.cases import Target
from rnnbench.fidelity import Fidelity, measure_fidelity
from rnnbench.fidelity import measure as module
from rnnbench.fidelity.worker import Round, ToolFacts

FIGURE = Fidelity("fake:honest", "looped-stitched", 32, "a tool", bound=104e-6, tool_s=100e-6, empty=1e-6, ratio=1.04)


def test_longer_calls_hold_by_their_ratio() -> None:
    assert FIGURE.verdict == "holds"
    assert replace(FIGURE, ratio=1.06).verdict == "too far"


def test_single_steps_hold_by_an_empty_call_and_a_share_of_the_tool_s_figure() -> None:
    single = replace(FIGURE, chunk=1, tool_s=20e-6, empty=2e-6, empty_after_call=9e-6, ratio=1.2)
    assert replace(single, difference=2.9e-6).verdict == "holds"
    assert replace(single, difference=3.1e-6).verdict == "too far"


def test_a_tool_that_is_slower_by_as_much_is_no_proof() -> None:
    assert replace(FIGURE, ratio=0.94).verdict == "tool slower"
    single = replace(FIGURE, chunk=1, tool_s=20e-6, empty=2e-6, empty_after_call=9e-6, ratio=0.8)
    assert replace(single, difference=-3.1e-6).verdict == "tool slower"
    assert replace(single, difference=-2.9e-6).verdict == "holds"


def test_a_verdict_is_undecided_while_the_interval_has_a_limit_in_it() -> None:
    assert not replace(FIGURE, interval=None).is_undecided
    assert not replace(FIGURE, interval=(1.03, 1.049)).is_undecided
    assert replace(FIGURE, interval=(1.03, 1.06)).is_undecided
    assert replace(FIGURE, interval=(0.94, 1.0)).is_undecided
    assert not replace(FIGURE, interval=(1.06, 1.08)).is_undecided
    assert not replace(FIGURE, chunk=1, interval=(1.03, 1.059)).is_undecided


def test_a_program_that_was_not_measured_has_no_verdict() -> None:
    assert replace(FIGURE, unmeasured="no tool").verdict is None


def test_a_ratio_is_the_median_of_processes_with_their_interval() -> None:
    """One process of four is disturbed in most of its turns, another in one of them."""
    calm, disturbed = Round(1.02, 1.0, 0.1, 0.2), Round(3.0, 1.0, 0.1, 0.2)
    processes = [[calm] * 3, [calm] * 3, [calm, calm, disturbed], [calm, disturbed, disturbed]]
    figure = module.summarise(FIGURE, processes)
    assert figure.ratio == pytest.approx(1.02)
    assert figure.difference == pytest.approx(0.02)
    assert (figure.empty, figure.empty_after_call) == (0.1, 0.2)
    assert figure.interval is not None
    assert figure.interval[0] < figure.ratio < figure.interval[1]
    assert module.summarise(FIGURE, processes[:1]).interval is None


@pytest.mark.parametrize(
    ("ratios", "processes"), [((1.0, 1.01), module.PROCESSES), ((0.9, 1.2), module.MOST_PROCESSES)]
)
def test_more_processes_are_added_while_the_verdict_is_open(
    monkeypatch: pytest.MonkeyPatch, ratios: tuple[float, ...], processes: int
) -> None:
    requested = []
    ratio = cycle(ratios)

    def run_process(*_: object, rounds: int) -> tuple[ToolFacts, list[Round]]:
        requested.append(rounds)
        return ToolFacts("a fake tool", ""), [Round(next(ratio), 1.0, 0.0, 0.0)] * rounds

    monkeypatch.setattr(
        module,
        "_run_process",
        lambda chosen, folder, rounds: run_process(chosen.trial, rounds=rounds),
    )
    (figure,) = measure_fidelity([Target("numpy", "eager")], (2,))
    assert requested == [0, *[module.ROUNDS] * processes]
    assert figure.is_undecided == (processes == module.MOST_PROCESSES)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROCESSES": 2, "ROUNDS": 2, "TURN_S": 0.01}.items():
        monkeypatch.setattr(module, name, value)


def test_a_backend_without_a_tool_says_so(short: None) -> None:
    (figure,) = measure_fidelity([Target("numpy", "eager")], (2,))
    assert figure.verdict is None
    assert "no tool of the runtime of 'numpy' is known" in figure.unmeasured


def test_a_process_that_dies_is_the_reason(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (figure,) = measure_fidelity([Target("numpy", "eager")], (2,))
    assert "status 1" in figure.unmeasured
