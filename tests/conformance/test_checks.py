"""Checks pass an honest adapter in every strategy, and what an adapter raises is told from what it computes."""

from __future__ import annotations

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from rnnbench_fake import FakeBackend

from rnnbench.conformance.checks import CHECKS, run_checks
from rnnbench.conformance.oracle import Oracle
from rnnbench.run.messages import request_of


@pytest.fixture
def verdicts(tmp_path):
    """The verdicts of all checks on a trial of the fake backend, its session doctored by the test."""

    def check(state="stitched", chunk=4):
        trial = make_trial(state=state, chunk=chunk)
        oracle = Oracle(trial, tmp_path)
        program = FakeBackend().build(request_of(trial, oracle.weights), tmp_path / "cache")
        return dict(run_checks(program, oracle))

    return check


@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
@pytest.mark.parametrize("chunk", [1, 4, 5, 12])
def test_an_honest_adapter_is_not_accused(verdicts, state, chunk):
    found = verdicts(state, chunk)
    assert set(found) == {check.name for check in CHECKS}
    assert not [name for name, figure in found.items() if figure.verdict == "fail"]


def test_what_has_no_meaning_is_not_applicable_and_says_why(verdicts):
    found = verdicts("none")
    assert {n for n, f in found.items() if f.verdict == "not-applicable"} == {
        "chunks",
        "start",
        "state",
        "exchange",
        "batch",
        "lengths",
    }
    assert all(figure.detail for figure in found.values() if figure.verdict == "not-applicable")


def test_a_check_that_raises_has_failed_and_says_with_what(verdicts, monkeypatch):
    def reset(self):
        if self.state:
            raise NotImplementedError("no reset here")
        self._write_state({spec.name: np.zeros(self._shape(spec), spec.dtype) for spec in self._states})

    monkeypatch.setattr(HonestSession, "reset", reset)
    assert verdicts()["reset"].detail == "raised NotImplementedError: no reset here"


def test_a_program_that_cannot_run_at_all_is_not_called_wrong(verdicts, monkeypatch):
    monkeypatch.setattr(HonestSession, "compute", lambda self, x: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        verdicts()


def test_every_check_has_a_name_and_a_sentence():
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.sentence.endswith(".") for check in CHECKS)
