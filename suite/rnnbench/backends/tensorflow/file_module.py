"""A user's file as a `tf.Module` with `step`, as in `traced_function`: its own layers or graph, in the suite's layout.

States in variables of the file are arguments of its call, as those are that it has as inputs and outputs. So both kinds
are stitched, or in variables of the module. Arrays of bfloat16 are float32 outside the call, as the suite has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.backends.shared import STORED_AS, from_file, to_file
from rnnbench.backends.tensorflow.traced_function import traced
from rnnbench.model_files import (
    FileNetwork,
    KerasProgram,
    SavedModelProgram,
    TensorflowProgram,
    unchanged_path,
)

_PROGRAMS = {"keras": KerasProgram, "savedmodel": SavedModelProgram}


def file_module(request: Request, network: FileNetwork, jit: bool) -> Any:
    """The module. Raises ModelFileError."""
    program: TensorflowProgram = _PROGRAMS[network.format](unchanged_path(network))
    call, module = _Call(request, network, program), tf.Module()
    module.weights, module.state = program.variables, []

    def from_zeros(x: Any) -> tuple[Any]:
        return (call(x, ())[0],)

    def stateful(x: Any) -> tuple[Any]:
        y, after = call(x, [variable.read_value() for variable in module.state])
        for variable, value in zip(module.state, after, strict=True):
            variable.assign(value)
        return (y,)

    def stitched(x: Any, *state: Any) -> tuple[Any, ...]:
        y, after = call(x, state)
        return (y, *after)

    x_spec = tf.TensorSpec((request.strategy.chunk, request.batch, network.input), _exchanged(network.dtype), "x")
    if request.strategy.state == "none":
        return traced(module, from_zeros, [x_spec], jit)
    if request.strategy.state == "stitched":
        specs = [tf.TensorSpec(shape, dtype, f"state{index}") for index, (shape, dtype) in enumerate(call.rows)]
        return traced(module, stitched, [x_spec, *specs], jit)
    module.state = [tf.Variable(tf.zeros(shape, dtype)) for shape, dtype in call.rows]
    return traced(module, stateful, [x_spec], jit)


def _exchanged(dtype: str) -> str:
    """The type in which the suite has arrays of a type of the file."""
    return STORED_AS.get(dtype, dtype)


class _Call:
    """A call of the file, of x and the state as the suite has them: a list of rows [batch, size]."""

    def __init__(self, request: Request, network: FileNetwork, program: TensorflowProgram) -> None:
        self._network, self._program = network, program
        self._sizes = request.strategy.chunk, request.batch
        self._shapes = network.state_shapes(request.batch)
        self._types = {name: network.state_dtype(name, network.dtype) for name in self._shapes}
        types = {name: _exchanged(dtype) for name, dtype in self._types.items()}
        self.rows = [(shape[1:], types[name]) for name, shape in self._shapes.items() for _ in range(shape[0])]
        """The shape and the type of each, as the suite has it."""

    def __call__(self, x: Any, rows: Sequence[Any]) -> tuple[Any, list[Any]]:
        arrays = to_file(_Ops(), self._network, tf.cast(x, self._network.dtype), self._joined(rows), *self._sizes)
        arrays |= {name: tf.constant(value) for name, value in self._network.constant_arrays(self._sizes[1]).items()}
        y, states = from_file(_Ops(), self._network, self._program(arrays), *self._sizes)
        after = [tf.cast(states[name], _exchanged(dtype)) for name, dtype in self._types.items()]
        return tf.cast(y, _exchanged(self._network.dtype)), [row for state in after for row in tf.unstack(state)]

    def _joined(self, rows: Sequence[Any]) -> dict[str, Any]:
        left = iter(rows)
        return {
            name: tf.cast(tf.stack([next(left) for _ in range(shape[0])]), self._types[name])
            for name, shape in self._shapes.items()
        }


class _Ops:
    """`ArrayOps` over tensors."""

    def reshaped(self, value: Any, shape: Sequence[int]) -> Any:
        return tf.reshape(value, shape)

    def transposed(self, value: Any, order: Sequence[int]) -> Any:
        return tf.transpose(value, order)

    def columns(self, value: Any, first: int, end: int) -> Any:
        return value[:, :, first:end]

    def cast(self, value: Any, dtype: str) -> Any:
        return tf.cast(value, dtype)

    def joined(self, values: Sequence[Any]) -> Any:
        return tf.concat(values, 2)
