"""Timed calls of both paths are checked after sampling, by the state that they led to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestBound, HonestProgram, HonestSession

from rnnbench.backends import request_of
from rnnbench.backends.shared import of_one_step
from rnnbench.conformance import RING, PublicPath, ReferenceTrajectories, TimedPath
from rnnbench.conformance.long_runs import calls_before_settled, rounding_after, settled_start
from rnnbench.conformance.tolerance import FACTOR
from rnnbench.rnn import network_of

TIMED_CALLS = 1_201
"""More than the reference needs to settle, and no multiple of the ring."""


class WrongOnceTimed(HonestSession):
    """In both paths, while calls are timed: each fault is a method that is called then."""

    timing = False
    calls = 0

    def compute(self, x):
        self.calls += self.timing
        return super().compute(x)


class SkipsACall(WrongOnceTimed):
    def compute(self, x):
        y = super().compute(x)
        if self.calls == 1_190:
            self.state = self.before
        self.before = self.state
        return y


class LosesItsState(WrongOnceTimed):
    def compute(self, x):
        if self.timing and self.calls == TIMED_CALLS - 3:
            self.reset()
        return super().compute(x)


class OutputIsStaleOnceTimed(WrongOnceTimed):
    """The output alone, from then on."""

    stale: np.ndarray | None = None

    def compute(self, x):
        y = super().compute(x)
        self.stale, y = y, (self.stale if self.calls and self.stale is not None else y)
        return y


class WrongFromTheThirdCall(HonestSession):
    made = 0

    def compute(self, x):
        self.made += 1
        return super().compute(x) + (self.made > 2)


@pytest.fixture
def path_of(references):
    def prepared(path, session, state="stitched", chunk=1, model=None):
        class Program(HonestProgram):
            def open(self):
                return session(self)

        trial = make_trial(state=state, chunk=chunk)
        trial = replace(trial, model=model or trial.model)
        reference = ReferenceTrajectories(trial, references)
        request = request_of(trial, reference.weights)
        program = Program(request, "digest", True, lambda: Program(of_one_step(request), "digest", True, program.tail))
        return path(program.open(), reference)

    return prepared


def sample(path, calls):
    call = path.timed_call if isinstance(path, PublicPath) else path.bound
    path.session.timing = True
    for _ in range(calls):
        call()
    path.session.timing = False
    path.called(calls)


@pytest.mark.each_value
@pytest.mark.parametrize("path", [TimedPath, PublicPath])
@pytest.mark.parametrize("state", ["none", "stitched"])
@pytest.mark.parametrize("calls", [0, 3, TIMED_CALLS])
def test_an_honest_path_passes_before_and_after_it_is_sampled(path_of, path, state, calls):
    timed = path_of(path, WrongOnceTimed, state)
    assert timed.verify().verdict == "pass"
    timed.start()
    sample(timed, calls)
    assert timed.verify().verdict == "pass"
    assert timed.verify().verdict == "pass", "and again"


@pytest.mark.first(3)
@pytest.mark.parametrize("path", [TimedPath, PublicPath])
@pytest.mark.parametrize("session", [SkipsACall, LosesItsState, OutputIsStaleOnceTimed])
def test_what_went_wrong_while_it_was_sampled_is_found(path_of, path, session):
    timed = path_of(path, session)
    assert timed.verify().verdict == "pass"
    timed.start()
    sample(timed, TIMED_CALLS)
    result = timed.verify()
    assert result.verdict == "fail"
    assert ("public path" in result.detail) == (path is PublicPath)


class SkipsEveryThirdCall(WrongOnceTimed):
    """The network forgets those that are left out, so a long block ends rightly or nearly so."""

    def compute(self, x):
        before = self.state
        y = super().compute(x)
        if self.timing and self.calls % 3 == 1:
            self.state = before
        return y


class RoundsItsState(WrongOnceTimed):
    def compute(self, x):
        y = super().compute(x)
        if self.timing:
            self.state = {name: a.astype(np.float16).astype(np.float32) for name, a in self.state.items()}
        return y


@pytest.mark.parametrize("path", [TimedPath, PublicPath])
@pytest.mark.parametrize("session", [SkipsEveryThirdCall, RoundsItsState])
def test_a_program_whose_blocks_are_short_is_checked_as_it_is_timed(path_of, path, session):
    """Of few calls of a block nothing is known: the ring does not repeat itself by then."""
    timed = path_of(path, session)
    timed.start()
    sample(timed, 20)
    assert timed.verify().verdict == "pass"
    result = timed.verify_as_timed(lambda calls: sample(timed, calls))
    assert result.verdict == "fail"
    assert "in the loop that times them" in result.detail


@pytest.mark.parametrize("path", [TimedPath, PublicPath])
@pytest.mark.parametrize("state", ["none", "stitched"])
def test_an_honest_path_passes_as_it_is_timed(path_of, path, state):
    timed = path_of(path, WrongOnceTimed, state)
    sample(timed, 3)
    assert timed.verify_as_timed(lambda calls: sample(timed, calls)).verdict == "pass"


@pytest.mark.parametrize("path", [TimedPath, PublicPath])
def test_the_first_calls_are_checked_before_any_is_timed(path_of, path):
    assert path_of(path, WrongOnceTimed).verify_first_calls().verdict == "pass"
    result = path_of(path, WrongFromTheThirdCall).verify_first_calls()
    assert result.verdict == "fail"
    assert "after 3 calls" in result.detail


def test_many_calls_are_checked_as_well_as_the_first(path_of):
    result = path_of(TimedPath, WrongFromTheThirdCall).verify()
    assert result.verdict == "fail"
    assert "after 1 calls" not in result.detail


def test_the_timed_public_call_keeps_nothing(path_of):
    """Else its timing would contain the freeing of the last output."""
    path = path_of(PublicPath, WrongOnceTimed)
    path.timed_call()
    assert path.bound.output() == {}


def test_a_bound_call_is_timed_as_the_session_gave_it(path_of):
    assert type(path_of(TimedPath, WrongOnceTimed).bound) is HonestBound


class ReadsTheStateBeforeTheLastCall(HonestSession):
    """All outputs are right, and so is what follows."""

    def compute(self, x):
        self.before = self.state
        return super().compute(x)

    def _read_state(self):
        return {name: array.copy() for name, array in getattr(self, "before", self.state).items()}


@pytest.mark.parametrize("path", [TimedPath, PublicPath])
def test_the_state_that_timed_calls_led_to_is_compared_as_well_as_their_output(path_of, path):
    timed = path_of(path, ReadsTheStateBeforeTheLastCall)
    timed.start()
    sample(timed, 3)
    assert "state " in timed.verify().detail


def test_a_network_that_forgets_slowly_may_round_more_after_many_calls_than_after_a_few(path_of):
    """Its rounding errors add up over hundreds of calls, which one state that is off stands for here."""
    slow = network_of({"network": "gla", "hidden": 4, "heads": 1, "keys": 2, "input": 2})
    timed = path_of(TimedPath, WrongOnceTimed, model=slow)
    reference = timed._reference
    calls = calls_before_settled(reference)
    assert calls > TIMED_CALLS
    off = {name: FACTOR / 4 * rounding_after(reference, calls, name) for name in reference.start}
    assert all((off[name] > FACTOR * reference.rounding_at(0, name)).any() for name in off)
    timed.start()
    timed.session.set_state({name: a + off[name].astype(a.dtype) for name, a in settled_start(reference).items()})
    timed.called(calls)
    sample(timed, 1)
    assert timed.verify().verdict == "pass"


@pytest.mark.parametrize("path", [TimedPath, PublicPath])
def test_without_a_state_each_call_may_be_off_by_the_rounding_of_one_call(path_of, path):
    """An error that could have grown over several calls is too large for one."""

    class OffOnceTimed(WrongOnceTimed):
        def compute(self, x):
            return super().compute(x) + self.off * self.timing

    timed = path_of(path, OffOnceTimed, "none", chunk=4)
    timed.session.off = 1.5 * FACTOR * timed._reference.rounding_at(3).max().astype(np.float32)

    def make(calls):
        timed.session.timing = True
        for _ in range(calls):
            timed.bound()
        timed.session.timing = False
        return calls

    results = [timed.verify_block("timed", partial(make, calls)) for calls in range(1, RING + 1)]
    assert {result.verdict for result in results} == {"fail"}
