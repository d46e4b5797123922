"""The oracle agrees with torch in float64 over the models that torch can express."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples
from random_models import Problem, models, problem

from rnnbench.rnn import Model, run_reference

torch = pytest.importorskip("torch")


def run_torch(model: Model, data: Problem) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """y and the final state; a reverse model runs forward over the flipped stream, for torch has no other way."""
    kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[model.cell]
    options = {"nonlinearity": model.activation} if model.cell == "rnn" else {}
    if model.projection:
        options["proj_size"] = model.projection
    module = kind(
        model.input,
        model.hidden,
        model.layers,
        bias=model.bias,
        bidirectional=model.direction == "bidirectional",
        dtype=torch.float64,
        **options,
    )
    flip = model.direction == "reverse"
    named = {name.removesuffix("_reverse") if flip else name: a for name, a in data.weights.named(model)}
    module.load_state_dict({name: torch.tensor(array) for name, array in named.items()})
    state = {name: torch.tensor(array) for name, array in data.state.items()}
    with torch.no_grad():
        x = torch.tensor(data.x)
        y, final = module(x.flip(0) if flip else x, tuple(state.values()) if model.cell == "lstm" else state["h"])
    finals = final if model.cell == "lstm" else (final,)
    return (y.flip(0) if flip else y).numpy(), {name: a.numpy() for name, a in zip(state, finals, strict=True)}


@examples(40)
@given(
    model=models(cell=st.sampled_from(["lstm", "gru", "rnn"]), clip=None, cell_clip=None, reset_after=True).filter(
        lambda model: model.direction != "reverse" or model.layers == 1
    ),
    steps=st.integers(1, 7),
    batch=st.integers(1, 4),
    seed=st.integers(0, 99),
    scale=st.sampled_from([1.0, 4.0]),
)
def test_agrees_with_torch(model: Model, steps: int, batch: int, seed: int, scale: float) -> None:
    data = problem(model, steps, batch, seed, scale)
    y, final = run_torch(model, data)
    found = run_reference(model, data.weights, data.x, data.state)
    np.testing.assert_allclose(found.y, y, rtol=1e-10, atol=1e-12)
    for name, array in final.items():
        np.testing.assert_allclose(found.final[name], array, rtol=1e-10, atol=1e-12)


def test_starts_from_zeros_where_no_state_is_given() -> None:
    model = Model(cell="lstm", input=3, hidden=4)
    data = problem(model, steps=2, batch=2)
    zeros = {name: np.zeros_like(array) for name, array in data.state.items()}
    y, _ = run_torch(model, Problem(data.weights, data.x, zeros))
    np.testing.assert_allclose(run_reference(model, data.weights, data.x).y, y, rtol=1e-12)
