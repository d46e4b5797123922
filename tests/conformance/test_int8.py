"""Checks of programs with int8 weights: honest ways to quantise are not accused, and planted faults are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestProgram, HonestSession
from int8_arithmetic import (
    FAULTY_INT8,
    HONEST_INT8,
    MISREAD_RANGES,
    UNBOUNDED_RANGES,
    Asymmetric,
    ByRow,
    InFloat,
    SevenBits,
)
from quick_tests import for_proof
from verdicts import failures

from rnnbench.cases import Trial
from rnnbench.conformance import CHECKS, suite
from rnnbench.rnn import Arithmetic, Layer, Model, Weights
from rnnbench.rnn.quantised import Range, quantised

pytestmark = pytest.mark.usefixtures("few_turns")

LSTM, GRU = Model(cell="lstm", input=12, hidden=24), Model(cell="gru", input=5, hidden=17, layers=2)
WEIGHTS = ("w_ih", "w_hh")
EACH_WAY = [way for way in HONEST_INT8 if way not in (SevenBits, ByRow)]
Ranges = list[dict[str, Range]]
"""Of each layer, by matrix."""


@pytest.fixture
def values_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one check that has to find a wrong network."""
    monkeypatch.setattr(suite, "CHECKS", [check for check in CHECKS if check.name == "values"])


@pytest.fixture
def contents_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one check that has to find what the rounding of activations hides."""
    monkeypatch.setattr(suite, "CHECKS", [check for check in CHECKS if check.name == "contents"])


def trial(model: Model = LSTM, batch: int = 1, dtype: str = "int8_dynamic") -> Trial:
    return replace(make_trial(), model=model, batch=batch, dtype=dtype, steps=21)


def session_of(arithmetic: type[Arithmetic]) -> type[HonestSession]:
    return type("Session", (HonestSession,), {"arithmetic": arithmetic})


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "arithmetic", [*EACH_WAY, *for_proof(SevenBits, ByRow)], ids=lambda arithmetic: arithmetic.__name__
)
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


class QuantisedByRow(AlteredWeights):
    """Bytes of a scale for each row, made from those of one scale for the whole matrix."""

    def altered(self, layer: Layer) -> Layer:
        def by_row(weight: np.ndarray) -> np.ndarray:
            scale = np.abs(weight).max(axis=1, keepdims=True) / np.float32(127)
            return np.rint(weight / scale) * scale

        return replace(layer, w_ih=by_row(layer.w_ih), w_hh=by_row(layer.w_hh))


class RecurrentZeroPointOffByOne(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        return replace(layer, w_hh=layer.w_hh + np.float32(quantised(layer.w_hh).scale))


class InputZeroPointOffByOne(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        return replace(layer, w_ih=layer.w_ih + np.float32(quantised(layer.w_ih).scale))


class LeastByteIsMinus128(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        q, scale = quantised(layer.w_hh)
        return replace(layer, w_hh=np.where(q == -127, np.float32(-128 * scale), layer.w_hh))


class LargestBytesSaturateAt126(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        end = np.float32(126 * quantised(layer.w_hh).scale)
        return replace(layer, w_hh=np.clip(layer.w_hh, -end, end))


class OneByteIsAnother(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        q, scale = quantised(layer.w_hh)
        q[-1, -1] ^= 0x20
        return replace(layer, w_hh=(q * scale).astype(np.float32))


class ScaleInHalfPrecision(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        q, scale = quantised(layer.w_hh)
        return replace(layer, w_hh=q * np.float32(np.float16(scale)))


class ScaleOfTheInputsMatrix(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        q, _ = quantised(layer.w_hh)
        return replace(layer, w_hh=(q * quantised(layer.w_ih).scale).astype(np.float32))


class BiasInBytes(AlteredWeights):
    def altered(self, layer: Layer) -> Layer:
        assert layer.b_hh is not None
        return replace(layer, b_hh=quantised(layer.b_hh).values)


def in_bytes(array: np.ndarray) -> np.ndarray:
    """The nearest values of 8 bits with a sign."""
    return quantised(array).values


class CellStateInBytes(HonestSession):
    def compute(self, x: np.ndarray) -> np.ndarray:
        y = super().compute(x)
        self.state["c"] = in_bytes(self.state["c"])
        return y


class OutputInBytes(HonestSession):
    def compute(self, x: np.ndarray) -> np.ndarray:
        return in_bytes(super().compute(x))


class GatesInBytes(HonestSession):
    class arithmetic(Arithmetic):
        def activated(self, value: np.ndarray) -> np.ndarray:
            return in_bytes(value)


HIDDEN = (
    QuantisedByRow,
    RecurrentZeroPointOffByOne,
    InputZeroPointOffByOne,
    LeastByteIsMinus128,
    LargestBytesSaturateAt126,
    OneByteIsAnother,
    ScaleInHalfPrecision,
    ScaleOfTheInputsMatrix,
    BiasInBytes,
    CellStateInBytes,
    OutputInBytes,
    GatesInBytes,
)
"""Off by less than x and h are rounded by."""
ROUNDING = ("int8_dynamic", "int8_static")
HIDDEN_ONCE = [*zip(HIDDEN, cycle(ROUNDING))]


@pytest.mark.first(4)
@pytest.mark.usefixtures("contents_alone")
@pytest.mark.parametrize(
    ("session", "dtype"),
    [*HIDDEN_ONCE, *for_proof(*(pair for pair in product(HIDDEN, ROUNDING) if pair not in HIDDEN_ONCE))],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_fault_that_the_rounding_of_activations_hides_is_found(
    session: type[HonestSession], dtype: str, references: Path
) -> None:
    assert "contents" in failures(trial(dtype=dtype), session, references)


@pytest.mark.usefixtures("contents_alone")
@pytest.mark.parametrize(
    ("model", "chunk", "state", "arithmetic"),
    [
        (Model(cell="lstm", input=1, hidden=1), 1, "stitched", SevenBits),
        (Model(cell="gru", input=3, hidden=65, gain=8.0), 4, "stateful", ByRow),
        (Model(cell="rnn", input=33, hidden=33, layers=2), 3, "stitched", Asymmetric),
        (Model(cell="lstm", input=5, hidden=7, gain=64.0), 7, "none", SevenBits),
        *for_proof(
            (Model(cell="lstm", input=7, hidden=257), 7, "stitched", Asymmetric),
            (Model(cell="gru", input=1, hidden=513), 1, "stateful", InFloat),
        ),
    ],
    ids=lambda value: getattr(value, "label", getattr(value, "__name__", value)),
)
def test_numbers_that_8_bits_hold_accuse_no_way_to_quantise(model, chunk, state, arithmetic, references: Path) -> None:
    held = trial(model, 3)
    held = replace(held, strategy=replace(held.strategy, chunk=chunk, state=state))
    assert failures(held, session_of(arithmetic), references) == {}


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


class OtherRanges(HonestSession, ABC):
    """Quantises x and h by other ranges than those that it was given."""

    def __init__(self, program: HonestProgram) -> None:
        super().__init__(program)
        given = [dict(layer.ranges) for layer in self.weights.layers]
        altered = zip(self.weights.layers, self.altered(given), strict=True)
        self.weights = Weights(tuple(replace(layer, ranges=ranges) for layer, ranges in altered))

    @abstractmethod
    def altered(self, given: Ranges) -> Ranges:
        """The ranges of each layer by the matrix that they belong to."""


class OfTheOtherProduct(OtherRanges):
    """The scale and the zero point of h for x, and those of x for h."""

    def altered(self, given: Ranges) -> Ranges:
        return [{"w_ih": ranges["w_hh"], "w_hh": ranges["w_ih"]} for ranges in given]


class OfTheLayerBelow(OtherRanges):
    def altered(self, given: Ranges) -> Ranges:
        return [given[-1], *given[:-1]]


class ZeroOfTheLayerBelow(OtherRanges):
    """With the layer's own scale."""

    def altered(self, given: Ranges) -> Ranges:
        below = [given[-1], *given[:-1]]
        return [
            {name: Range(own[name].scale, other[name].zero) for name in own}
            for own, other in zip(given, below, strict=True)
        ]


class OfHalf(OtherRanges):
    """A calibration that saw too little: steps are finer, and values that do occur saturate."""

    def altered(self, given: Ranges) -> Ranges:
        return [{name: Range(own.scale / 2, own.zero) for name, own in ranges.items()} for ranges in given]


class FourTimesAsCoarse(OtherRanges):
    """Nothing saturates."""

    def altered(self, given: Ranges) -> Ranges:
        return [{name: Range(own.scale * 4, own.zero) for name, own in ranges.items()} for ranges in given]


def with_ranges(kind: type[Range]) -> type[HonestSession]:
    """A session whose ranges quantise in the way of `kind`."""

    def altered(_: OtherRanges, given: Ranges) -> Ranges:
        return [{name: kind(own.scale, own.zero) for name, own in ranges.items()} for ranges in given]

    return type(kind.__name__, (OtherRanges,), {"altered": altered})


STACK = Model(cell="rnn", input=12, hidden=24, layers=2, activation="relu")
"""Its h is never negative, and x is: their zero points are far apart."""


@pytest.mark.proof
@pytest.mark.parametrize("model", [*for_proof(LSTM, GRU), STACK], ids=["lstm", "gru", "rnn"])
def test_an_honest_program_of_fixed_ranges_is_not_accused(model: Model, references: Path) -> None:
    assert failures(trial(model, 3, "int8_static"), HonestSession, references) == {}


@pytest.mark.usefixtures("values_alone")
@pytest.mark.parametrize(
    "session",
    [
        OfTheOtherProduct,
        OfTheLayerBelow,
        ZeroOfTheLayerBelow,
        OfHalf,
        FourTimesAsCoarse,
        *map(with_ranges, MISREAD_RANGES),
    ],
    ids=lambda session: session.__name__,
)
def test_a_fault_of_a_fixed_range_is_found(session: type[HonestSession], references: Path) -> None:
    assert "values" in failures(trial(STACK, dtype="int8_static"), session, references)


@pytest.mark.proof
@pytest.mark.parametrize("session", [*map(with_ranges, UNBOUNDED_RANGES), session_of(InFloat)])
def test_a_program_that_does_not_saturate_is_found(session: type[HonestSession], references: Path) -> None:
    assert {"saturation", "magnitudes"} <= failures(trial(dtype="int8_static"), session, references).keys()
