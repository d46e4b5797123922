"""Checks of programs with int8 weights: honest ways to quantise are not accused, and planted faults are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from few_turns import set_turns
from harness_trials import make_trial
from honest_adapter import HonestProgram, HonestSession
from int8_arithmetic import FAULTY_INT8, HONEST_INT8, ByRow, SevenBits
from verdicts import failures

from rnnbench.cases import Trial
from rnnbench.conformance import CHECKS, suite
from rnnbench.rnn import Arithmetic, Layer, Model, Weights
from rnnbench.rnn.quantised import quantised

LSTM, GRU = Model(cell="lstm", input=12, hidden=24), Model(cell="gru", input=5, hidden=17, layers=2)
WEIGHTS = ("w_ih", "w_hh")


@pytest.fixture(autouse=True)
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    set_turns(monkeypatch)


@pytest.fixture
def values_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one check that has to find a wrong network."""
    monkeypatch.setattr(suite, "CHECKS", [check for check in CHECKS if check.name == "values"])


def trial(model: Model = LSTM, batch: int = 1, dtype: str = "int8_dynamic") -> Trial:
    return replace(make_trial(), model=model, batch=batch, dtype=dtype, steps=21)


def session_of(arithmetic: type[Arithmetic]) -> type[HonestSession]:
    return type("Session", (HonestSession,), {"arithmetic": arithmetic})


@pytest.mark.parametrize("arithmetic", HONEST_INT8, ids=lambda arithmetic: arithmetic.__name__)
def test_honest_ways_to_quantise_are_not_accused(arithmetic: type[Arithmetic], references: Path) -> None:
    model, batch = (GRU, 3) if arithmetic in (SevenBits, ByRow) else (LSTM, 1)
    assert failures(trial(model, batch), session_of(arithmetic), references) == {}


@pytest.mark.usefixtures("values_alone")
@pytest.mark.parametrize("arithmetic", FAULTY_INT8, ids=lambda arithmetic: arithmetic.__name__)
def test_a_fault_of_quantising_activations_is_found(arithmetic, references: Path) -> None:
    assert "values" in failures(trial(), session_of(arithmetic), references)


class AlteredWeights(HonestSession, ABC):
    """Computes with other weights than those that it was given."""

    def __init__(self, program: HonestProgram) -> None:
        super().__init__(program)
        self.weights = Weights(tuple(self.altered(layer) for layer in self.weights.layers))

    @abstractmethod
    def altered(self, layer: Layer) -> Layer:
        """The layer with the planted fault."""


class ScaleOfRecurrentWeightsDoubled(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        return replace(layer, w_hh=2 * layer.w_hh)


class ScaleOfInputWeightsOffByAQuarter(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        return replace(layer, w_ih=np.float32(1.25) * layer.w_ih)


class WeightsZeroPointForgotten(AlteredWeights):
    """Bytes with a zero point of 128, which is not subtracted."""

    def altered(self, layer: Layer) -> Layer:
        return replace(layer, w_hh=layer.w_hh + np.float32(128 * quantised(layer.w_hh).scale))


class ForgetAndOutputGatesSwapped(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        def swapped(array: np.ndarray) -> np.ndarray:
            return np.concatenate([np.split(array, 4)[gate] for gate in (0, 3, 2, 1)])

        return replace(layer, **{name: swapped(getattr(layer, name)) for name in (*WEIGHTS, "b_ih", "b_hh")})


ALTERED = (
    ScaleOfRecurrentWeightsDoubled,
    ScaleOfInputWeightsOffByAQuarter,
    WeightsZeroPointForgotten,
    ForgetAndOutputGatesSwapped,
)


@pytest.mark.usefixtures("values_alone")
@pytest.mark.parametrize("session", ALTERED, ids=lambda session: session.__name__)
def test_a_fault_of_int8_weights_is_found(session: type[HonestSession], references: Path) -> None:
    assert "values" in failures(trial(), session, references)


class Quantising(HonestSession):
    """Quantises activations where that is not asked for."""

    def __init__(self, program: HonestProgram) -> None:
        super().__init__(program)
        self.dtype = "int8_dynamic"


@pytest.mark.usefixtures("values_alone")
def test_int8_weights_alone_are_held_to_the_rounding_of_float32(references: Path) -> None:
    held = trial(dtype="int8_weights")
    assert failures(held, session_of(Arithmetic), references) == {}
    assert "values" in failures(held, Quantising, references)
