"""Weights and inputs are the same numbers everywhere, and stand in PyTorch's layout under PyTorch's names."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from quick_tests import examples
from random_models import models

from rnnbench.rnn import Model, draw_inputs, draw_state, draw_weights

MODEL = Model(cell="lstm", input=5, hidden=7, layers=2, projection=3, direction="bidirectional")


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def test_the_drawn_numbers_are_pinned() -> None:
    """A NumPy whose generator draws other numbers would make new runs incomparable with old ones."""
    assert digest(*(array for _, array in draw_weights(MODEL, seed=1).named(MODEL))) == "014def065114c2cb"
    assert digest(draw_inputs(MODEL, steps=9, batch=2, seed=1)) == "41bf92fda23de03e"
    assert digest(*draw_state(MODEL, batch=2, seed=1).values()) == "ff9c23592f1599bf"


def test_another_seed_draws_other_numbers() -> None:
    assert not np.array_equal(draw_inputs(MODEL, 4, 1, seed=1), draw_inputs(MODEL, 4, 1, seed=2))


def test_a_longer_stream_begins_with_the_shorter() -> None:
    assert np.array_equal(draw_inputs(MODEL, 4, 2, seed=3), draw_inputs(MODEL, 9, 2, seed=3)[:4])


def test_a_counter_counts_in_small_whole_numbers() -> None:
    model = Model(cell="counter", input=3, hidden=3)
    x, state = draw_inputs(model, 50, 2, seed=0), draw_state(model, 2, seed=0)
    assert draw_weights(model, seed=0).layers == ()
    for values in (x, state["h"]):
        assert np.array_equal(values, np.round(values))
        assert np.abs(values).max() <= 4


def test_what_is_drawn_is_read_only() -> None:
    drawn = [draw_inputs(MODEL, 2, 1, 0), *draw_state(MODEL, 1, 0).values()]
    drawn += [array for _, array in draw_weights(MODEL, 0).named(MODEL)]
    assert not any(array.flags.writeable for array in drawn)


@examples(20)
@given(model=models(cell="lstm", direction="forward") | models(cell="gru", direction="bidirectional"))
def test_names_and_shapes_are_those_of_torch(model: Model) -> None:
    torch = pytest.importorskip("torch")
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[model.cell](
        model.input,
        model.hidden,
        model.layers,
        bias=model.bias,
        bidirectional=model.direction == "bidirectional",
        **({"proj_size": model.projection} if model.projection else {}),
    )
    expected = {name: tuple(value.shape) for name, value in module.named_parameters()}
    assert {name: array.shape for name, array in draw_weights(model, 0).named(model)} == expected
