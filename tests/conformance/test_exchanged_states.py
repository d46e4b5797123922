"""A state of another backend goes on here, where it is right; where it is not, it counts against nobody else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faulty_returns import StateIsFloat64
from harness_trials import make_trial
from honest_adapter import HonestSession
from verdicts import verdicts

from rnnbench.cases import Target
from rnnbench.conformance import suite
from rnnbench.conformance.array_files import load_arrays, save_arrays

TRIAL = make_trial(target="fake:honest")
OTHER = "another"


@pytest.fixture
def exchange(tmp_path, monkeypatch):
    """The result of the check for a session, in a run's folder."""
    first, *others = suite.CHECKS
    kept = [first, *(check for check in others if check.name == "exchange")]
    monkeypatch.setattr(suite, "CHECKS", kept)

    def check(session=HonestSession, backend="fake"):
        return verdicts(replace(TRIAL, target=Target(backend, "honest")), session, tmp_path)["exchange"]

    return check


def saved(folder, backend):
    (file,) = folder.glob(f"states-*/{backend}.npz")
    return file


def test_a_state_of_another_backend_goes_on_here(exchange):
    assert exchange(backend=OTHER).detail == "from the state of the reference"
    assert exchange().detail == f"from the state of the reference, {OTHER}"


WRONG = {
    "no number": lambda state: {name: array * np.nan for name, array in state.items()},
    "other numbers": lambda state: {name: array * 2 for name, array in state.items()},
    "huge": lambda state: {name: array * np.float32(1e30) for name, array in state.items()},
    "another type": lambda state: {name: array.astype(np.float64) for name, array in state.items()},
    "another shape": lambda state: {name: array[..., :2] for name, array in state.items()},
    "an array less": lambda state: {"h": state["h"]},
    "another name": lambda state: {"z": state["h"], "c": state["c"]},
    "nothing": lambda state: {},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_state_is_not_used(exchange, tmp_path, wrong):
    exchange(backend=OTHER)
    file = saved(tmp_path, OTHER)
    save_arrays(file, wrong(load_arrays(file)))
    result = exchange()
    assert (result.verdict, result.detail) == ("pass", "from the state of the reference")


def test_a_program_with_wrong_states_saves_none(exchange, tmp_path):
    assert exchange(StateIsFloat64, OTHER).verdict == "pass", "its numbers are right; `signature` finds it"
    assert not list(tmp_path.glob("states-*/*.npz"))
    assert exchange().verdict == "pass"
