"""Every planted fault is found by the check that is there for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from faulty_adapters import FAULTS, Fault
from few_turns import COUNTS, set_turns
from harness_trials import make_trial
from honest_adapter import HonestSession
from quick_tests import one_of_each_class
from verdicts import failures

from rnnbench.conformance import CHECKS, RING, arrays, mixed_calls, streams, suite, threads
from rnnbench.conformance import endurance as endurance_module
from rnnbench.conformance.endurance import ENDURANCE
from rnnbench.rnn import Model

ENDURANCE_S = 3600.0
"""More than any machine needs for so many steps and calls, which are far beyond what other checks feed."""
STEPS, CALLS, OTHERS = 1_500, 300, 20
BETWEEN = ("isolation", "closing")
"""Checks that run while a stream is left alone. They open some fifteen sessions."""


def trial_for(fault: Fault):
    given = dict(fault.trial)
    model = {key: given[key] for key in ("cell", "layers", "direction", "input") if key in given}
    trial = make_trial(state=given.get("state", "stitched"), chunk=given.get("chunk", 4))
    long = fault.found_by in {check.name for check in ENDURANCE}
    return replace(
        trial,
        model=given.get("model") or Model(**{"cell": "lstm", "input": 3, "hidden": 4, **model}),
        steps=given.get("steps", trial.steps),
        dtype=given.get("dtype", "float32"),
        batch=given.get("batch", 1),
        lengths=given.get("lengths", "full"),
        limits=replace(trial.limits, endurance=ENDURANCE_S if long else 0.0),
    )


def check(fault: Fault) -> str:
    """The check that finds it. `make test` has one fault of each."""
    return fault.found_by


@pytest.mark.parametrize("fault", one_of_each_class(FAULTS, check), ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault, references, monkeypatch):
    monkeypatch.setattr(endurance_module, "STEPS", STEPS)
    monkeypatch.setattr(endurance_module, "CALLS", CALLS)
    monkeypatch.setattr(endurance_module, "OTHERS", OTHERS)
    first, *others = CHECKS
    made = {fault.found_by, *(BETWEEN if fault.found_by == "left-alone" else ())}
    monkeypatch.setattr(suite, "CHECKS", [first, *(check for check in others if check.name in made)])
    set_turns(monkeypatch, fault.found_by)
    found = failures(trial_for(fault), fault.session, references)
    assert fault.found_by in found, f"{fault.name} was missed; found by {sorted(found) or 'nothing'}"
    assert all(found.values()), "a failure says what is wrong"


def test_one_call_of_all_of_the_ring_and_the_step_after_it_are_right(references, monkeypatch):
    """y is as wide as the ring is long, so there is a call of so many steps."""
    monkeypatch.setattr(suite, "CHECKS", [check for check in CHECKS if check.name in ("values", "chunks")])
    trial = replace(make_trial(chunk=1), model=Model(cell="lstm", input=3, hidden=RING))
    assert failures(trial, HonestSession, references) == {}


def test_every_check_has_two_faults_that_it_is_there_for():
    found_by = Counter(fault.found_by for fault in FAULTS)
    assert {check.name for check in CHECKS} == set(found_by)
    assert min(found_by.values()) >= 2
    assert len(FAULTS) >= 180


def test_no_planted_fault_needs_more_turns_than_a_case_that_says_what_is_enough_gives():
    needed = {check: count for check, (_, _, _, count) in COUNTS.items()}
    enough = {
        "kept": streams.KEPT_ENOUGH,
        "sessions": streams.OPENED_ENOUGH,
        "resets": streams.RESETS_ENOUGH,
        "threads": threads.THREAD_CALLS_ENOUGH,
        "mixed": mixed_calls.QUEUED_ENOUGH,
        "watched": arrays.WATCHED_ENOUGH,
    }
    assert enough.keys() == needed.keys()
    assert {check for check in needed if needed[check] > enough[check]} == set()
    assert STEPS <= endurance_module.STEPS_ENOUGH
    assert CALLS <= endurance_module.CALLS_ENOUGH
    assert OTHERS <= endurance_module.OTHERS_ENOUGH
    assert streams.OPENED_ENOUGH > streams.OPEN_AT_ONCE
