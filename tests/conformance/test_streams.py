"""Checks of many results, sessions and resets end soon after they have the turns that their verdicts need."""

from __future__ import annotations

import pytest
from harness_trials import make_trial
from honest_adapter import HonestProgram, HonestSession

from rnnbench.backends import request_of
from rnnbench.conformance import ReferenceTrajectories, streams
from rnnbench.conformance.suite import Opener


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
