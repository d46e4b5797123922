"""A Relax module for a request: the bodies of the network's layers in Relax, with their weights as constants.

`main` returns (y, state), the state a tuple of arrays, as (h, c). Without a state it takes x alone. Stitched, it takes
x and the whole result of the last call, so that no caller has to take the result apart. Stateful, it takes x and the
state, and also writes the new state into its memory. Unrolled, it has a copy of each layer's body for each step.
Looped, it calls a function that runs a step and then calls itself: Relax has no loop, so a loop is written as recursion
under an `if`. Chunked, that function runs a block of steps. A layer without a state is computed once, for all steps.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from tvm import IRModule, relax
from tvm.relax import BlockBuilder

from rnnbench.backends.base import Request
from rnnbench.backends.tvm.relax_loop import Loop, Shapes, State, Step
from rnnbench.backends.tvm.relax_operations import FunctionCounts
from rnnbench.backends.tvm.relax_primitives import RelaxPrimitives, Value
from rnnbench.rnn import LayerBody, run_graph, runs_together, state_by_array, state_by_layer, together


def relax_module(request: Request) -> tuple[IRModule, dict[str, FunctionCounts]]:
    """The module, and what each of its functions has, by name."""
    return _Module(request).build()


class _Module:
    def __init__(self, request: Request) -> None:
        self.network = request.model
        self.graph = request.model.graph
        self.weights = request.weights
        self.strategy = request.strategy
        self.batch = request.batch
        self.builder = BlockBuilder()
        self.ops = RelaxPrimitives(self.builder, self.builder)
        self.shapes = self.network.state_shapes(self.batch)
        self.steps = self.strategy.copies or self.strategy.chunk
        """The steps of one pass of a loop."""
        self.together = runs_together(self.strategy.time)
        self.loops = self._loops() if self.steps < self.strategy.chunk else {}

    def build(self) -> tuple[IRModule, dict[str, FunctionCounts]]:
        chunk, batch, network = self.strategy.chunk, self.batch, self.network
        x = relax.Var("x", relax.TensorType((chunk, batch, network.input), "float32"))
        types = [relax.TensorType(shape, "float32") for shape in self.shapes.values()]
        state = relax.Var("state", relax.TupleType(types))
        y = relax.TensorType((chunk, batch, network.width), "float32")
        last = relax.Var("last", relax.TupleType([y, state.ty]))
        arguments = {"none": [x], "stitched": [x, last], "stateful": [x, state]}[self.strategy.state]
        with self.builder.function("main", arguments):
            with self.builder.dataflow():
                given: list[Value] = []
                if self.strategy.state != "none":
                    stitched = self.strategy.state == "stitched"
                    old = self.builder.emit(last[1]) if stitched else state
                    # What is written after the block must be an output of it. Others must not: TVM 0.27 fuses such an
                    # element of a tuple with nothing, and fails.
                    emit = self.builder.emit if stitched else self.builder.emit_output
                    given = [self.ops.lent(emit(old[column])) for column in range(len(types))]
                results = [self.builder.emit_output(value) for value in self._results(self.ops.lent(x), given)]
            y, *values = results
            if self.strategy.state == "stateful":
                # In the block before, TVM may put a write before a reading of the same memory.
                values = [self.ops.written_over(*pair) for pair in zip(given, values, strict=True)]
            self.builder.emit_func_output(relax.Tuple([y, relax.Tuple(values)]))
        written = {"main": self.ops.written, **{loop.name: loop.written for loop in self.loops.values()}}
        return self.builder.get(), written

    def _results(self, x: Value, given: list[Value]) -> list[Value]:
        """y, and the final state in the shapes of the given one."""
        chunk, batch = self.strategy.chunk, self.batch
        before = self._states(given)
        finals: list[State] = []

        def run(index: int, read: Value) -> Value:
            y, final = self._run(index, read, before[index])
            finals.append(final)
            return y

        y = run_graph(self.network, self.ops.reshaped(x, chunk * batch, self.network.input), run, self.ops.concat)
        values = [self.ops.reshaped(y, chunk, batch, self.network.width)]
        if given:
            arrays = zip(state_by_array(self.network, finals).values(), self.shapes.values(), strict=True)
            values += [self.ops.reshaped(self.ops.joined(rows, axis=0), *shape) for rows, shape in arrays]
        return [self.ops.owned(value) for value in values]

    def _body(self, ops: RelaxPrimitives, index: int) -> LayerBody[Value]:
        return self.network.body(ops, self.weights, index)

    def _step(self, ops: RelaxPrimitives, index: int) -> Step:
        """A step of a layer, or a block of them."""
        body = self._body(ops, index)
        if not self.together:
            return body.advance
        return lambda row, state: together(body, self.strategy.time, row, state, self.steps, self.batch)

    def _loops(self) -> dict[int, Loop]:
        """By the layer's index."""
        at_once = self.steps if self.together else 1
        rows = self.strategy.chunk // at_once, at_once * self.batch
        return {
            index: Loop(
                self.builder,
                f"steps_{index}",
                partial(self._step, index=index),
                Shapes(
                    (*rows, layer.projected),
                    (*rows, layer.width),
                    [(self.batch, self.shapes[name][2]) for name, _ in layer.states],
                ),
                layer.backward,
                self.steps // at_once,
            )
            for index, layer in enumerate(self.graph)
            if layer.states
        }

    def _run(self, index: int, x: Value, state: State) -> tuple[Value, State]:
        """One layer in one direction over x [chunk·batch, input]."""
        body, layer = self._body(self.ops, index), self.graph[index]
        projected = body.project(x)
        if not layer.states:
            return projected, ()
        if self.loops:
            return self.loops[index].run(self.ops, projected, state)
        if self.together:
            with self.ops.copy():
                return together(body, self.strategy.time, projected, state, self.steps, self.batch)
        steps = self.ops.parts(projected, self.strategy.chunk, axis=0)
        outputs = []
        for step in reversed(steps) if layer.backward else steps:
            with self.ops.copy():
                y, state = body.advance(step, state)
            outputs.append(y)
        return self.ops.joined(outputs[::-1] if layer.backward else outputs, axis=0), state

    def _states(self, given: list[Value]) -> list[State]:
        """The initial state of each layer and direction: the given one, or zeros."""
        rows = {}
        for column, (name, (count, batch, size)) in enumerate(self.shapes.items()):
            if given:
                flat = self.ops.reshaped(given[column], count * batch, size)
                rows[name] = self.ops.parts(flat, count, axis=0)
            else:
                rows[name] = [self.ops.constant(np.zeros((batch, size), np.float32))] * count
        return state_by_layer(self.network, rows)
