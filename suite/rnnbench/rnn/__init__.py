"""Recurrent networks: what is computed, without any framework.

A `Model` specifies a network. `draw_weights`, `draw_inputs`, `draw_lengths` and `draw_state` draw its numbers from a
seed, and `run_reference` computes what it gives, in float64. `cell_body` writes each cell once, for backends that
author programs. `call_cost` says what a call must read and do. `DTYPES` has the floating-point types, with their
precision.

A name is imported when it is first used, so that `Model` alone does not import NumPy.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.rnn.arithmetic import Arithmetic, RandomRounding
    from rnnbench.rnn.cells import CellBody, Primitives, cell_body
    from rnnbench.rnn.cost import Cost, Reading, call_cost
    from rnnbench.rnn.dtypes import DTYPES, Dtype, nearest, rounded
    from rnnbench.rnn.reference import Trajectory, run_in, run_reference
    from rnnbench.rnn.spec import GATES, Cell, Direction, Model, Size
    from rnnbench.rnn.weights import Layer, Weights, draw_inputs, draw_lengths, draw_state, draw_weights

_NAMES = {
    "arithmetic": (
        "Arithmetic",
        "RandomRounding",
    ),
    "cells": (
        "CellBody",
        "Primitives",
        "cell_body",
    ),
    "cost": (
        "Cost",
        "Reading",
        "call_cost",
    ),
    "dtypes": (
        "DTYPES",
        "Dtype",
        "nearest",
        "rounded",
    ),
    "reference": (
        "Trajectory",
        "run_in",
        "run_reference",
    ),
    "spec": (
        "Cell",
        "Direction",
        "GATES",
        "Model",
        "Size",
    ),
    "weights": (
        "Layer",
        "Weights",
        "draw_inputs",
        "draw_lengths",
        "draw_state",
        "draw_weights",
    ),
}
__all__ = [
    "DTYPES",
    "GATES",
    "Arithmetic",
    "Cell",
    "CellBody",
    "Cost",
    "Direction",
    "Dtype",
    "Layer",
    "Model",
    "Primitives",
    "RandomRounding",
    "Reading",
    "Size",
    "Trajectory",
    "Weights",
    "call_cost",
    "cell_body",
    "draw_inputs",
    "draw_lengths",
    "draw_state",
    "draw_weights",
    "nearest",
    "rounded",
    "run_in",
    "run_reference",
]
__getattr__ = lazy_names(__name__, _NAMES)
