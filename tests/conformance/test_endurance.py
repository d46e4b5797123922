"""Long checks stop when their time is up, say how far they came, and take no allocator's lumps for a leak."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from faulty_leavings import Leaks, session_that
from harness_trials import make_trial
from honest_adapter import HonestBound, HonestProgram, HonestSession
from quick_tests import for_proof
from rnnbench_fake import FakeBackend

from rnnbench.backends import request_of
from rnnbench.backends.shared import of_one_step
from rnnbench.cases import Limits
from rnnbench.conformance import CHECKS, RING, ReferenceTrajectories, run_checks, suite
from rnnbench.conformance import endurance as endurance_module
from rnnbench.conformance.endurance import (
    CALLS,
    ENDURANCE,
    LEAST_CALLS,
    LEAST_FED,
    LOOKS,
    STEPS,
    UNSEEN,
    WINDOWS,
    exact_after,
)
from rnnbench.conformance.long_runs import rounding_after
from rnnbench.conformance.rounding import Y
from rnnbench.conformance.suite import Opener
from rnnbench.rnn import Model, run_reference

COUNTER = Model(cell="counter", input=3, hidden=3)


@pytest.fixture
def verdicts(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "CHECKS", (*CHECKS[:1], *ENDURANCE))

    def check(seconds, **trial):
        enduring = replace(make_trial(limits=Limits(endurance=seconds)), **trial)
        reference = ReferenceTrajectories(enduring, tmp_path)
        program = FakeBackend().build(request_of(enduring, reference.weights), tmp_path / "cache")
        return dict(run_checks(program, reference))

    return check


@pytest.mark.first(1)
@pytest.mark.parametrize("model", [make_trial().model, COUNTER, Model(cell="rnn", input=1, hidden=1)], ids=str)
def test_an_honest_adapter_neither_drifts_nor_grows(verdicts, model, monkeypatch):
    monkeypatch.setattr(endurance_module, "STEPS", 1_000)
    monkeypatch.setattr(endurance_module, "CALLS", 400)
    found = verdicts(3600.0, model=model)
    assert found["drift"].verdict == found["memory"].verdict == "pass", found


def test_both_say_how_far_they_came_and_how_much_grew(verdicts):
    found = verdicts(0.1)
    drift, memory = found["drift"].figures, found["memory"].figures
    assert RING * 4 <= drift["steps"] <= STEPS
    assert f"{drift['steps']:,.0f} steps" in found["drift"].detail
    assert drift["growth"] > 0
    assert 0 < memory["calls"] <= CALLS
    assert f"{memory['calls']:,.0f}" in found["memory"].detail


def test_without_time_for_them_they_are_left_out(verdicts):
    assert not {"drift", "memory"} & set(verdicts(0.0))


@pytest.mark.first(4)
@pytest.mark.parametrize("model", [make_trial().model, COUNTER], ids=lambda model: model.cell)
@pytest.mark.parametrize("calls", [1, 9, 16, 1003, 2500])
def test_what_is_expected_after_many_calls_is_what_the_reference_comes_to(tmp_path, model, calls):
    reference = ReferenceTrajectories(replace(make_trial(), model=model), tmp_path)
    x = np.concatenate([reference.ring[call % RING]["x"] for call in range(calls)])
    run = run_reference(model, reference.weights, x, reference.start)
    expected = exact_after(reference, calls)
    assert expected is not None
    np.testing.assert_allclose(expected[Y], run.y[-reference.trial.strategy.chunk :], atol=1e-11)
    for name, array in run.final.items():
        np.testing.assert_allclose(expected[name], array, atol=1e-11)


def check_alone(name, session, trial, tmp_path):
    """The result of one check of a program with such sessions."""
    reference = ReferenceTrajectories(trial, tmp_path)

    class Program(HonestProgram):
        def open(self):
            return session(self)

    request = request_of(trial, reference.weights)
    program = Program(request, "digest", True, lambda: Program(of_one_step(request), "digest", True, program.tail))
    check = next(check for check in ENDURANCE if check.name == name)
    with Opener(program) as open_session:
        return check.run(open_session, reference)


@pytest.mark.proof
def test_a_single_wrong_step_of_ten_thousand_is_found_and_named(tmp_path):
    class Bound(HonestBound):
        def __call__(self):
            super().__call__()
            if self.calls == 5_000:
                self.y = self.y + np.float32(1e-3)

    session = type("Session", (HonestSession,), {"_bind": lambda self, ring: Bound(self, ring)})
    trial = make_trial(chunk=1, limits=Limits(endurance=3600.0))
    result = check_alone("drift", session, replace(trial, model=Model(cell="rnn", input=1, hidden=1)), tmp_path)
    assert result.verdict == "fail"
    assert re.match(r"y after 6,?66\d steps: off by 0.001", result.detail), result.detail
    assert result.figures["compared"] > 0.9 * STEPS


@pytest.mark.parametrize(("name", "least"), [("drift", LEAST_FED), ("memory", LEAST_CALLS)])
def test_both_end_once_they_have_the_calls_that_their_verdicts_need(name, least, tmp_path):
    found = check_alone(name, HonestSession, make_trial(limits=Limits(endurance=3600.0, enough=1e-9)), tmp_path)
    assert (found.verdict, found.figures["done"], found.figures["least"]) == ("pass", least, least)


@pytest.mark.parametrize(("calls", "compared"), [(100, 100), *for_proof((8 * UNSEEN, 7 * UNSEEN + len(LOOKS)))])
def test_drift_compares_all_calls_but_those_of_a_long_run_that_may_overlap(calls, compared, tmp_path, monkeypatch):
    monkeypatch.setattr(endurance_module, "STEPS", 4 * calls)
    found = check_alone("drift", HonestSession, make_trial(limits=Limits(endurance=3600.0)), tmp_path)
    assert (found.verdict, found.figures["compared"]) == ("pass", compared)
    assert f"fed {4 * calls:,} steps in {calls:,} calls, and compared {compared:,} calls" in found.detail


def test_without_time_neither_has_passed(verdicts):
    found = verdicts(1e-9)
    assert found["drift"].verdict == found["memory"].verdict == "too-short"
    for name in ("drift", "memory"):
        assert "a pass means nothing" in found[name].detail
        assert found[name].figures["done"] < found[name].figures["least"]


@pytest.mark.parametrize(
    ("leak", "named", "place"),
    [
        ("descriptor", "descriptors grow", "step"),
        ("thread", "threads grow", "open"),
        *for_proof(*(("descriptor", "descriptors grow", place) for place in ("open", "bind", "close"))),
        *for_proof(*(("thread", "threads grow", place) for place in ("call", "get_state", "close"))),
        ("segment", "shared segments grow", "close"),
    ],
)
def test_what_sessions_leave_behind_is_a_leak(leak, named, place, tmp_path, monkeypatch, own_segments):
    monkeypatch.setattr(endurance_module, "CALLS", 4 * WINDOWS)
    leaks = Leaks()
    try:
        trial = make_trial(limits=Limits(endurance=3600.0))
        result = check_alone("memory", session_that(getattr(leaks, leak), place), trial, tmp_path)
    finally:
        leaks.clean_up()
    assert result.verdict == "fail"
    assert f"{named} without end" in result.detail


def test_children_that_sessions_leave_behind_are_a_leak(tmp_path, monkeypatch):
    monkeypatch.setattr(endurance_module, "CALLS", 2 * WINDOWS)
    monkeypatch.setattr(endurance_module, "SESSIONS", 1)
    leaks = Leaks()
    try:
        trial = make_trial(limits=Limits(endurance=3600.0))
        result = check_alone("memory", session_that(leaks.child, "close"), trial, tmp_path)
    finally:
        leaks.clean_up()
    assert result.verdict == "fail"
    assert "children grow without end" in result.detail


def test_a_pool_that_the_first_calls_start_is_no_leak(tmp_path, monkeypatch):
    monkeypatch.setattr(endurance_module, "CALLS", 4 * WINDOWS)
    leaks, started = Leaks(), []

    def start():
        if len(started) < 6:
            started.append(leaks.thread())
            leaks.descriptor()

    try:
        trial = make_trial(limits=Limits(endurance=3600.0))
        assert check_alone("memory", session_that(start, "step"), trial, tmp_path).verdict == "pass"
    finally:
        leaks.clean_up()


@pytest.mark.first(5)
@pytest.mark.parametrize(
    ("kib_by_window", "verdict"),
    [
        ([0, 0, 0, 0], "pass"),
        ([1024, 0, 1024, 0], "pass"),
        ([4096, 512, 128, 16], "pass"),
        ([-64, 900, 900, 900], "pass"),
        ([100, 100, 100, 100], "fail"),
        ([300, 80, 200, 90], "fail"),
        ([300, 80, 200, 90, 0, 0, 0, 0], "pass"),
        ([300, 80, 200, 90, 300, 80, 0, 90], "pass"),
    ],
)
def test_only_memory_that_grows_in_every_window_is_lost(monkeypatch, tmp_path, kib_by_window, verdict):
    """And in every window of a second look: a cache is full by then."""
    levels = [1 << 30]
    for grown in (kib_by_window * 2)[: 2 * (WINDOWS - 1)]:
        levels.append(levels[-1] + (grown << 10))
    levels.insert(WINDOWS, levels[WINDOWS - 1])  # the second look begins where the first one ended
    measured = iter(levels)
    monkeypatch.setattr(endurance_module, "resident_in_use", lambda: next(measured, levels[-1]))
    monkeypatch.setattr(endurance_module, "CALLS", 2 * WINDOWS)
    trial = make_trial(limits=Limits(endurance=0.01))
    reference = ReferenceTrajectories(trial, tmp_path)
    program = FakeBackend().build(request_of(trial, reference.weights), tmp_path / "cache")
    memory = next(check for check in ENDURANCE if check.name == "memory")
    with Opener(program) as open_session:
        assert memory.run(open_session, reference).verdict == verdict


def test_a_network_that_forgets_its_start_at_once_is_rounded_as_over_the_whole_ring(references, monkeypatch):
    """Its largest values may come in a later call of the ring."""
    reference = ReferenceTrajectories(make_trial(chunk=3), references)
    monkeypatch.setattr(reference, "rounding_at", lambda step, array: step)
    settled = replace(reference.ring_trajectory, settled_after=2)
    monkeypatch.setattr(reference, "ring_trajectory", settled)
    assert [rounding_after(reference, calls) for calls in (1, 2, RING, 1000)] == [2, *[3 * RING - 1] * 3]
