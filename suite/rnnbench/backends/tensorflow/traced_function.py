"""A request as a `tf.Module` with one traced function, `step`. Adapters of converters use it, too.

This module imports TensorFlow. Call `prepare_process` before the first operation of a process.

    none       step(x) -> (y,)                  from zeros
    none       step(x, lengths) -> (y,)         where the request is ragged; lengths: int32 [batch]
    stitched   step(x, *state) -> (y, *state)
    stateful   step(x) -> (y,)                  the state is in `state`, variables of the module

The state is flat: that of the first layer and direction (h, or h and c), then of the next, [batch, size] each. In a
compound network it is each array, [rows, batch, size].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.backends.tensorflow.block_lstm import layers_of_operators
from rnnbench.backends.tensorflow.cells import Network
from rnnbench.backends.tensorflow.compound import TensorflowLoop
from rnnbench.backends.tensorflow.process import prepare_process
from rnnbench.rnn import FUSED, CompoundNetwork

__all__ = ["add_state_functions", "authored", "lengths_specs", "prepare_process", "state_specs", "traced", "x_spec"]

Advance = Callable[..., tuple[Any, list[Any]]]
"""y and the flat state, from x, the flat state and, where rows have any, their lengths."""


def authored(request: Request, copies: int | None, jit: bool) -> Any:
    """The module of the bodies of the network's layers; where the time is `fused`, of operators."""
    advance = _advance(request, copies)
    specs = state_specs(request)
    module = tf.Module()
    module.state = []

    def from_zeros(x: Any, *lengths: Any) -> tuple[Any]:
        y, _ = advance(x, [tf.zeros(spec.shape, spec.dtype) for spec in specs], *lengths)
        return (y,)

    def stitched(x: Any, *state: Any) -> tuple[Any, ...]:
        y, final = advance(x, state)
        return (y, *final)

    def stateful(x: Any) -> tuple[Any]:
        y, final = advance(x, [variable.read_value() for variable in module.state])
        for variable, value in zip(module.state, final, strict=True):
            variable.assign(value)
        return (y,)

    if request.strategy.state == "stitched":
        return traced(module, stitched, [x_spec(request), *specs], jit)
    if request.strategy.state == "none":
        return traced(module, from_zeros, [x_spec(request), *lengths_specs(request)], jit)
    module.state = [tf.Variable(tf.zeros(spec.shape, spec.dtype)) for spec in specs]
    return traced(module, stateful, [x_spec(request)], jit)


def _advance(request: Request, copies: int | None) -> Advance:
    if request.strategy.time == FUSED:
        return partial(layers_of_operators, request)
    model = request.model
    return _compound(request, model) if isinstance(model, CompoundNetwork) else _layers(request, copies)


def _layers(request: Request, copies: int | None) -> Advance:
    network = Network(request, copies)
    sizes = [len(layer.states) for layer in request.model.graph]

    def advance(x: Any, state: Sequence[Any], *lengths: Any) -> tuple[Any, list[Any]]:
        values = iter(state)
        y, final = network(x, [tuple(islice(values, size)) for size in sizes], *lengths)
        return y, [value for of_layer in final for value in of_layer]

    return advance


def _compound(request: Request, network: CompoundNetwork) -> Advance:
    """The loop between the parts is in the program."""
    loop, names = TensorflowLoop(request), list(network.state_shapes(request.batch))

    def advance(x: Any, state: Sequence[Any], *lengths: Any) -> tuple[Any, list[Any]]:
        y, after = network.advance_in_program(loop, x, dict(zip(names, state, strict=True)))
        return y, [after[name] for name in names]

    return advance


def x_spec(request: Request) -> Any:
    return tf.TensorSpec((request.strategy.chunk, request.batch, request.model.input), request.precision.state, "x")


def lengths_specs(request: Request) -> list[Any]:
    return [tf.TensorSpec((request.batch,), tf.int32, "lengths")] if request.ragged else []


def state_specs(request: Request) -> list[Any]:
    shapes = request.model.state_shapes(request.batch)
    if isinstance(request.model, CompoundNetwork):
        return [tf.TensorSpec(shape, request.precision.state, name) for name, shape in shapes.items()]
    return [
        tf.TensorSpec(shapes[name][1:], request.precision.state, f"{name}{row}")
        for layer in request.model.graph
        for name, row in layer.states
    ]


def traced(module: Any, step: Callable[..., Any], signature: list[Any], jit: bool) -> Any:
    """`module` with `step`, which is traced here: its Python code never runs again."""
    module.step = tf.function(step, input_signature=signature, autograph=False, jit_compile=jit or None)
    module.step.get_concrete_function()
    return module


def add_state_functions(module: Any) -> None:
    """Add `get_state() -> (*state,)` and `set_state(*state)` to a module whose state is in variables.

    `set_state` returns a number, since LiteRT has no signature without a result.
    """

    def get_state() -> tuple[Any, ...]:
        return tuple(variable.read_value() for variable in module.state)

    def set_state(*state: Any) -> tuple[Any]:
        for variable, value in zip(module.state, state, strict=True):
            variable.assign(value)
        return (tf.constant(0),)

    specs = [tf.TensorSpec(v.shape, v.dtype, f"state{index}") for index, v in enumerate(module.state)]
    module.get_state = tf.function(get_state, input_signature=[], autograph=False)
    module.set_state = tf.function(set_state, input_signature=specs, autograph=False)
    for function in (module.get_state, module.set_state):
        function.get_concrete_function()
