"""Hypothesis strategies over the model space, and one drawn problem: weights, a stream and a state for a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rnnbench.rnn import Layer, Model, Weights, draw_inputs, draw_state, draw_weights

CLIPS = st.none() | st.floats(0.05, 2.0)


def with_other_activations() -> st.SearchStrategy[Model]:
    """LSTMs and GRUs whose activations are not their own sigmoid and tanh."""
    others = st.sampled_from([("relu", "sigmoid"), ("tanh", "hard_sigmoid"), ("relu", "hard_sigmoid")])
    gated = models(cell=st.sampled_from(["lstm", "gru"]))
    return st.builds(
        lambda model, chosen: model.model_copy(update={"activation": chosen[0], "recurrent_activation": chosen[1]}),
        gated,
        others,
    )


@st.composite
def models(draw: st.DrawFn, **fixed: Any) -> Model:
    """Any model of the spec, small; `fixed` pins fields to values or to strategies."""

    def field(name: str, strategy: st.SearchStrategy[Any]) -> Any:
        value = fixed.get(name, strategy)
        return draw(value) if isinstance(value, st.SearchStrategy) else value

    cell = field("cell", st.sampled_from(["lstm", "gru", "rnn", "counter"]))
    hidden = field("hidden", st.integers(1, 9))
    if cell == "counter":
        return Model(cell=cell, input=hidden, hidden=hidden)
    return Model(
        cell=cell,
        hidden=hidden,
        input=field("input", st.integers(1, 7)),
        layers=field("layers", st.integers(1, 3)),
        direction=field("direction", st.sampled_from(["forward", "reverse", "bidirectional"])),
        bias=field("bias", st.booleans()),
        clip=field("clip", CLIPS),
        projection=field("projection", st.integers(0, hidden - 1)) if cell == "lstm" else 0,
        cell_clip=field("cell_clip", CLIPS) if cell == "lstm" else None,
        reset_after=field("reset_after", st.booleans()) if cell == "gru" else True,
        activation=field("activation", st.sampled_from(["tanh", "relu"])) if cell == "rnn" else "tanh",
    )


@dataclass(frozen=True)
class Problem:
    """x [steps, batch, input] and a state for a model with weights, all in one dtype."""

    weights: Weights
    x: np.ndarray
    state: dict[str, np.ndarray]


def problem(model: Model, steps: int, batch: int, seed: int = 0, scale: float = 1.0, dtype: str = "float64") -> Problem:
    """`scale` multiplies the weights: at 1 an RNN is tame; at 3 its gates saturate, and every clip is reached."""
    layers = tuple(_scaled(layer, scale) for layer in draw_weights(model, seed, dtype).layers)
    return Problem(
        Weights(layers), draw_inputs(model, steps, batch, seed, dtype), draw_state(model, batch, seed, dtype)
    )


def _scaled(layer: Layer, scale: float) -> Layer:
    return replace(
        layer, **{name: value * scale for name, value in vars(layer).items() if isinstance(value, np.ndarray)}
    )
