"""A Relax module for a request: the shared cell of `rnn/cells.py` in Relax, with its weights as constants.

`main` returns (y, (h, c)). Without a state it takes x alone. Stitched, it takes x and the whole result of the last
call, so that no caller has to take the result apart. Stateful, it takes x and (h, c), and also writes the new state
into their memory. Unrolled, it has a copy of the cell for each step. Looped, it calls a function that runs a step and
then calls itself: Relax has no loop, so a loop is written as recursion under an `if`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from tvm import IRModule, relax, te
from tvm.relax import BlockBuilder, op

from rnnbench.backends.base import Request
from rnnbench.backends.tvm.relax_loop import Loop, State
from rnnbench.backends.tvm.relax_primitives import RelaxPrimitives, Value
from rnnbench.backends.tvm.unrolling import copies
from rnnbench.rnn import GATES, Layer, LayerBody, cell_body


def relax_module(request: Request) -> IRModule:
    return _Module(request).build()


class _Module:
    def __init__(self, request: Request) -> None:
        self.model = request.stack
        self.strategy = request.strategy
        self.batch = request.batch
        self.layers = request.weights.layers
        self.builder = BlockBuilder()
        self.ops = RelaxPrimitives(self.builder)
        self.shapes = self.model.state_shapes(self.batch)
        self.copies = copies(self.strategy) or 1
        self.loops = self._loops() if self.copies < self.strategy.chunk else []

    def build(self) -> IRModule:
        chunk, batch, model = self.strategy.chunk, self.batch, self.model
        x = relax.Var("x", relax.TensorType((chunk, batch, model.input), "float32"))
        types = [relax.TensorType(shape, "float32") for shape in self.shapes.values()]
        state = relax.Var("state", relax.TupleType(types))
        y = relax.TensorType((chunk, batch, model.width), "float32")
        last = relax.Var("last", relax.TupleType([y, state.ty]))
        arguments = {"none": [x], "stitched": [x, last], "stateful": [x, state]}[self.strategy.state]
        with self.builder.function("main", arguments):
            with self.builder.dataflow():
                given: list[Value] = []
                if self.strategy.state != "none":
                    old = self.builder.emit(last[1]) if self.strategy.state == "stitched" else state
                    given = [self.builder.emit(old[column]) for column in range(len(types))]
                states = self._states(given)
                sequence = self.ops.reshaped(x, chunk * batch, model.input)
                finals: list[State] = []
                for layer in range(model.layers):
                    outputs = []
                    for direction in range(model.directions):
                        index = layer * model.directions + direction
                        output, final = self._run(index, direction, sequence, states[index])
                        outputs.append(output)
                        finals.append(final)
                    sequence = self.ops.joined(outputs, axis=1)
                shaped = self.ops.reshaped(sequence, chunk, batch, model.width)
                output = self.builder.emit_output(relax.Tuple([shaped, relax.Tuple(self._final_state(given, finals))]))
            self.builder.emit_func_output(output)
        return self.builder.get()

    def _backward(self, direction: int) -> bool:
        return direction == 1 or self.model.direction == "reverse"

    def _cell(self, ops: RelaxPrimitives, index: int) -> LayerBody[Value]:
        nothing = np.empty((0, 0), np.float32)
        layer = self.layers[index] if self.layers else Layer(nothing, nothing, None, None, None)
        return cell_body(ops, self.model, layer)

    def _loops(self) -> list[Loop]:
        width = max(1, GATES[self.model.cell]) * self.model.hidden
        return [
            Loop(
                self.builder,
                f"steps_{index}",
                partial(self._cell, index=index),
                (self.strategy.chunk, self.batch, width),
                [(batch, size) for _, batch, size in self.shapes.values()],
                self._backward(index % self.model.directions),
                self.copies,
            )
            for index in range(self.model.layers * self.model.directions)
        ]

    def _run(self, index: int, direction: int, sequence: Value, state: State) -> tuple[Value, State]:
        """One layer in one direction over `sequence` [chunk·batch, width]."""
        body = self._cell(self.ops, index)
        projected = body.project(sequence)
        if self.loops:
            return self.loops[index].run(self.ops, projected, state)
        steps = self.ops.parts(projected, self.strategy.chunk, axis=0)
        backward, outputs = self._backward(direction), []
        for step in reversed(steps) if backward else steps:
            _, state = body.advance(step, state)
            outputs.append(state[0])
        return self.ops.joined(outputs[::-1] if backward else outputs, axis=0), state

    def _states(self, given: list[Value]) -> list[State]:
        """The initial state of each layer and direction: the given one, or zeros."""
        columns = []
        for column, (rows, batch, size) in enumerate(self.shapes.values()):
            if given:
                flat = self.ops.reshaped(given[column], rows * batch, size)
                columns.append(self.ops.parts(flat, rows, axis=0))
            else:
                columns.append([self.ops.constant(np.zeros((batch, size), np.float32))] * rows)
        return list(zip(*columns, strict=True))

    def _final_state(self, given: list[Value], finals: list[State]) -> list[Value]:
        """The final state in the shapes of the given one. Where it is stateful, it is also written to that memory."""
        values = []
        for argument, rows, shape in zip(given, zip(*finals, strict=True), self.shapes.values(), strict=False):
            value = self.ops.reshaped(self.ops.joined(list(rows), axis=0), *shape)
            values.append(self._written(argument, value) if self.strategy.state == "stateful" else value)
        return values

    def _written(self, target: Value, value: Value) -> Value:
        """`target`, its memory overwritten with `value`."""
        shape = list(target.ty.shape.values)
        new = te.placeholder(shape, "float32", name="new")
        copy = te.create_prim_func([new, te.compute(shape, lambda *at: new(*at), name="kept")])
        function = self.builder.add_func(copy.without_attr("global_symbol"), "keep")
        return self.builder.emit(op.call_tir_inplace(function, [value, target], [1], [target.ty]))
