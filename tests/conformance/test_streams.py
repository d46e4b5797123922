"""Checks of many results, sessions and resets end soon after they have the turns that their verdicts need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestProgram, HonestSession

from rnnbench.backends import request_of
from rnnbench.conformance import ReferenceTrajectories, streams
from rnnbench.conformance.budget import FIRST
from rnnbench.conformance.suite import Opener
from rnnbench.measure import resident


@pytest.mark.parametrize(("name", "time"), [("kept", "KEPT_S"), ("sessions", "OPENED_S"), ("resets", "RESETS_S")])
def test_a_slow_program_has_the_turns_that_a_verdict_needs(name, time, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, time, 1e-9)
    monkeypatch.setattr(streams, "GOES_ON", 3.6e12)
    trial = make_trial()
    reference = ReferenceTrajectories(trial, tmp_path)

    class Program(HonestProgram):
        def open(self):
            return HonestSession(self)

    program = Program(request_of(trial, reference.weights), "digest", True, lambda: program)
    check = next(check for check in streams.STREAMS if check.name == name)
    with Opener(program) as open_session:
        found = check.run(open_session, reference)
    assert found.verdict == "pass"
    assert found.figures["done"] == found.figures["least"]


@pytest.mark.parametrize(("seconds", "apart"), [(0.0, FIRST), (3600.0, streams.KEPT_APART)])
def test_a_slow_program_makes_few_calls_in_which_each_path_feeds_its_own_chunks(
    seconds, apart, references, monkeypatch
):
    monkeypatch.setattr(streams, "KEPT_S", seconds)
    monkeypatch.setattr(streams, "KEPT_CALLS", FIRST)
    trial, calls = make_trial(), []
    reference = ReferenceTrajectories(trial, references)

    class Session(HonestSession):
        def compute(self, x):
            calls.append(len(x))
            return super().compute(x)

    class Program(HonestProgram):
        def open(self):
            return Session(self)

    program = Program(request_of(trial, reference.weights), "digest", True, lambda: program)
    check = next(check for check in streams.STREAMS if check.name == "kept")
    with Opener(program) as open_session:
        assert check.run(open_session, reference).verdict != "fail"
    assert len(calls) == FIRST + apart


def test_no_further_sessions_are_kept_open_once_they_take_half_of_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "OPENED_S", 1e-9)
    monkeypatch.setattr(streams, "GOES_ON", 3.6e12)
    each = 16 << 20
    trial = make_trial()
    trial = replace(trial, limits=replace(trial.limits, memory=2 * (resident() + 6 * each)))
    reference = ReferenceTrajectories(trial, tmp_path)
    opened: list[HonestSession] = []
    most = 0

    class Large(HonestSession):
        def __init__(self, program: HonestProgram) -> None:
            nonlocal most
            super().__init__(program)
            self._large = np.ones(each, np.uint8)
            opened.append(self)
            most = max(most, len(opened))

        def close(self) -> None:
            super().close()
            opened.remove(self)

    class Program(HonestProgram):
        def open(self):
            return Large(self)

    program = Program(request_of(trial, reference.weights), "digest", True, lambda: program)
    check = next(check for check in streams.STREAMS if check.name == "sessions")
    with Opener(program) as open_session:
        found = check.run(open_session, reference)
    assert found.verdict == "pass"
    assert 6 <= most <= 6 + streams.WEIGHED_AFTER + 1
