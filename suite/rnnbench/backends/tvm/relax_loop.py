"""A loop over time in Relax: a function that runs one step, k steps or a block, and calls itself while some are left.

Its arguments are the number of the step, the projected inputs, the outputs so far and the state. Outputs are written in
place, a row for each step, into memory that the caller allocated for this call alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tvm import relax
from tvm.relax import BlockBuilder, op
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.relax_operations import FunctionCounts
from rnnbench.backends.tvm.relax_primitives import RelaxPrimitives, Value

State = tuple[Value, ...]
"""The state of one layer in one direction: [batch, size] each."""


class Shapes(NamedTuple):
    """The shapes of the arrays of a loop. If a pass runs k steps, `batch` is k·batch and `steps` counts passes."""

    projected: tuple[int, int, int]
    """[steps, batch, size]"""
    outputs: tuple[int, int, int]
    """[steps, batch, width]"""
    state: list[tuple[int, int]]
    """[batch, size] each."""


Step = Callable[[Value, State], tuple[Value, State]]
"""A step of a layer, or a block of its steps: from its row of the projection and the state to y and the next state."""


class Loop:
    """The function of one layer in one direction, added to the module of `builder`.

    `written` is what the function has. `step` makes a step of the primitives, and its constants.
    """

    def __init__(
        self,
        builder: BlockBuilder,
        name: str,
        step: Callable[[RelaxPrimitives], Step],
        shapes: Shapes,
        backward: bool,
        copies: int,
    ) -> None:
        self.name = name
        self._backward = backward
        self._copies = copies
        self._steps = shapes.projected[0]
        self._outputs = shapes.outputs
        self._step = step
        self._row = builder.add_func(_write_row(self._outputs), "write_row")
        types = [relax.TensorType((), "int64")]
        given = (shapes.projected, shapes.outputs, *shapes.state)
        types += [relax.TensorType(shape, "float32") for shape in given]
        names = ["step", "projected", "outputs", *(f"state_{index}" for index in range(len(shapes.state)))]
        self._arguments = [relax.Var(name, type_) for name, type_ in zip(names, types, strict=True)]
        forward = relax.Tuple(self._arguments[2:])
        self._itself = builder.add_func(relax.Function(self._arguments, forward, relax.TupleType(types[2:])), name)
        function, self.written = self._function(builder)
        builder.update_func(self._itself, function)

    def _function(self, module: BlockBuilder) -> tuple[Any, FunctionCounts]:
        builder = BlockBuilder()
        ops = RelaxPrimitives(builder, module)
        step, projected, outputs, *state = self._arguments
        with builder.function("steps", self._arguments):
            with builder.dataflow():
                advance, direction = self._step(ops), relax.const(-1 if self._backward else 1, "int64")
                for _ in range(self._copies):
                    row = builder.emit(op.take(projected, step, axis=0, mode="clip"))
                    with ops.copy():
                        y, after = advance(row, tuple(state))
                    outputs = builder.emit(op.call_tir_inplace(self._row, [y, step, outputs], [2], [outputs.ty]))
                    step, state = ops.add(step, direction), list(after)
                bound = relax.const(-1 if self._backward else self._steps, "int64")
                left = builder.emit(op.not_equal(step, bound))
                outputs, *state, step, left = (builder.emit_output(value) for value in (outputs, *state, step, left))
            again = relax.Call(self._itself, [step, projected, outputs, *state])
            builder.emit_func_output(builder.emit(relax.If(left, again, relax.Tuple([outputs, *state]))))
        return builder.get()["steps"].without_attr("global_symbol"), ops.written

    def run(self, ops: RelaxPrimitives, projected: Value, state: State) -> tuple[Value, State]:
        """All steps, from `state`: outputs [steps·batch, size] and the final state."""
        steps, batch, size = self._outputs
        shaped = ops.reshaped(projected, steps, batch, -1)
        empty = ops.builder.emit(op.builtin.alloc_tensor(relax.ShapeExpr(self._outputs), "float32", 0))
        first = relax.const(steps - 1 if self._backward else 0, "int64")
        result = ops.builder.emit(relax.Call(self._itself, [first, shaped, empty, *state]))
        outputs, *final = (ops.builder.emit(result[index]) for index in range(1 + len(state)))
        return ops.reshaped(outputs, steps * batch, size), tuple(final)


def _write_row(shape: tuple[int, int, int]) -> Any:
    """A PrimFunc (row, step, outputs) that writes outputs[step] = row."""
    _, batch, size = shape
    with IRBuilder() as builder, T.prim_func(s_tir=True, private=True):
        T.func_name("write_row")
        T.func_attr({"tirx.noalias": True})
        row = T.arg("row", T.buffer((T.int64(batch), T.int64(size)), "float32"))
        step = T.arg("step", T.buffer((), "int64"))
        outputs = T.arg("outputs", T.buffer(tuple(T.int64(extent) for extent in shape), "float32"))
        with T.grid(T.int64(batch), T.int64(size)) as (b, i), T.sblock("row"):
            at_b, at_i = T.axis.spatial(T.int64(batch), b), T.axis.spatial(T.int64(size), i)
            T.reads(row[at_b, at_i], step[()])
            T.writes(outputs[step[()], at_b, at_i])
            T.buffer_store(outputs, row[at_b, at_i], [step[()], at_b, at_i])
    return builder.get()
