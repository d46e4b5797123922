"""Checks pass an honest adapter in every strategy, and what an adapter raises is told from what it computes."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from quick_tests import for_proof
from rnnbench_fake import FakeBackend

from rnnbench.backends import request_of
from rnnbench.conformance import (
    CHECK_NAMES,
    CHECK_SENTENCES,
    CHECKS,
    CHECKS_BY_NAME,
    TIMED,
    Check,
    ReferenceTrajectories,
    run_checks,
    suite,
)
from rnnbench.outside_text import describe_error
from rnnbench.results.record import CheckResult

STATES, CHUNKS = ("none", "stitched", "stateful"), (1, 4, 5, 12)
EACH_ONCE = [("stitched", 1), ("stateful", 4), ("stitched", 5), ("none", 12)]


@pytest.fixture
def verdicts(tmp_path, references):
    """The verdicts of all checks on a trial of the fake backend, its session doctored by the test."""

    def check(state="stitched", chunk=4):
        trial = make_trial(state=state, chunk=chunk)
        reference = ReferenceTrajectories(trial, references)
        program = FakeBackend().build(request_of(trial, reference.weights), tmp_path / "cache")
        return dict(run_checks(program, reference))

    return check


def test_no_check_but_the_first_begins_when_the_time_of_all_is_over(tmp_path, references):
    """The process would be killed, and nothing would be known of any of them."""
    trial = make_trial()
    reference = ReferenceTrajectories(trial, references)
    program = FakeBackend().build(request_of(trial, reference.weights), tmp_path / "cache")
    found = dict(run_checks(program, reference, seconds=0.0))
    assert found["values"].verdict == "pass"
    others = [result for name, result in found.items() if name != "values"]
    assert all(result.not_begun for result in others)
    assert "s of them for the reference" in others[0].detail
    in_time = dict(run_checks(program, reference, seconds=3600.0))
    assert not any(result.not_begun for result in in_time.values())


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("state", "chunk"), [*EACH_ONCE, *for_proof(*(pair for pair in product(STATES, CHUNKS) if pair not in EACH_ONCE))]
)
def test_an_honest_adapter_is_not_accused(verdicts, state, chunk):
    found = verdicts(state, chunk)
    assert set(found) == {check.name for check in CHECKS if not check.long_running}
    assert not [name for name, figure in found.items() if figure.verdict == "fail"]


@pytest.mark.parametrize("state", ["none", "stateful"])
def test_what_computes_wrongly_fails_no_check_but_those_that_compare_numbers(verdicts, monkeypatch, state):
    """An entry of `expectations.yaml` that allows `numbers` needs no change when a check is added."""
    compute = HonestSession.compute
    monkeypatch.setattr(HonestSession, "compute", lambda self, x: compute(self, x) + np.float32(0.1))
    found = {name for name, figure in verdicts(state).items() if figure.verdict == "fail"}
    assert "values" in found
    assert found <= set(CHECKS_BY_NAME["numbers"])
    if state == "stateful":
        comparing = {check.name for check in CHECKS if check.compares and not check.long_running}
        assert comparing - found == {"state", "batch"}, "y of a batch of one"
    assert TIMED in CHECKS_BY_NAME["numbers"]


def test_what_has_no_meaning_is_not_applicable_and_says_why(verdicts):
    found = verdicts("none")
    assert {n for n, f in found.items() if f.verdict == "not-applicable"} == {
        "chunks",
        "start",
        "state",
        "exchange",
        "state-lost",
        "rewind",
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
    reset = verdicts()["reset"]
    assert reset.verdict == "fail"
    assert re.fullmatch(
        r"raised NotImplementedError: no reset here \(in the check 'reset', \w+\.py, line \d+\)", reset.detail
    )


def test_a_new_check_that_raises_is_named_with_its_line_wherever_it_stands(verdicts, monkeypatch):
    def new(open_session, reference):
        return {}["key"]

    place = f"in the check 'new', test_suite.py, line {new.__code__.co_firstlineno + 1}"
    check = Check("new", "It is true.", new)
    monkeypatch.setattr(suite, "CHECKS", (*CHECKS[:2], check))
    assert verdicts()["new"].detail == f"raised KeyError: 'key' ({place})"
    monkeypatch.setattr(suite, "CHECKS", (check, *CHECKS[:2]))
    with pytest.raises(KeyError) as raised:
        verdicts()
    assert describe_error(raised.value) == f"KeyError: 'key' ({place})"


def test_a_program_that_cannot_run_at_all_is_not_called_wrong(verdicts, monkeypatch):
    monkeypatch.setattr(HonestSession, "compute", lambda self, x: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        verdicts()


def test_every_check_has_a_name_and_a_sentence():
    assert len(set(CHECK_NAMES)) == len(CHECK_NAMES) == len(CHECKS) + 1, "and that of the timed path"
    assert all(check.sentence.endswith(".") for check in CHECKS)


def test_the_docs_list_every_check_with_its_sentence():
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {sentence} |" for name, sentence in CHECK_SENTENCES.items()]
    assert "\n".join(rows) in page


def test_a_check_that_cannot_be_begun_has_failed(verdicts, monkeypatch):
    def begin(open_session, reference):
        raise NotImplementedError("no second session")

    check = Check("spanning", "It spans the others.", lambda *_: CheckResult(verdict="pass"), begin=begin)
    monkeypatch.setattr(suite, "CHECKS", (*CHECKS[:2], check))
    found = verdicts()["spanning"]
    place = f"in the check 'spanning', test_suite.py, line {begin.__code__.co_firstlineno + 1}"
    assert (found.verdict, found.detail) == ("fail", f"raised NotImplementedError: no second session ({place})")


def test_a_further_check_is_one_entry(verdicts, monkeypatch):
    """A check of a reader's own: the first chunk of the ring gives no negative zero."""

    def no_negative_zero(open_session, reference):
        y = open_session().step(reference.ring[0])["y"]
        found = int(np.sum(np.signbit(y) & (y == 0)))
        return CheckResult(verdict="fail" if found else "pass", detail=f"{found} negative zeros")

    check = Check("no-negative-zero", "No output is a negative zero.", no_negative_zero)
    monkeypatch.setattr(suite, "CHECKS", (*CHECKS, check))
    assert verdicts()["no-negative-zero"] == CheckResult(verdict="pass", detail="0 negative zeros")
