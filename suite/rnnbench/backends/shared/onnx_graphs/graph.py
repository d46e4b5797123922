"""A request as an ONNX model: x (and the state, as h and c) to y (and next_h, next_c), every array of a fixed shape.

Arrays have the suite's layout in memory and the shapes that the nodes need. A reader makes a view of them, which is
free; a node that changes a shape would cost a copy in every call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared.onnx_graphs.authored import AuthoredLayer, LoopOperator
from rnnbench.backends.shared.onnx_graphs.compound import OnnxLoop, Tensor
from rnnbench.backends.shared.onnx_graphs.emitter import Array, Emitter
from rnnbench.backends.shared.onnx_graphs.fused import fused_layer
from rnnbench.backends.shared.onnx_graphs.support import NEXT, row_names, unsupported
from rnnbench.rnn import FUSED, CompoundNetwork, Model, run_graph, state_by_array, state_by_layer

OPSET = 17
IR_VERSION = 8
"""The version of 2022, which every reader here supports."""

State = dict[str, list[Array]]
"""The inputs of each state array: one, or one for each row."""


def build_graph(
    request: Request,
    operator: LoopOperator = "Scan",
    emitter: type[Emitter] = Emitter,
    *,
    rows_apart: bool = False,
) -> Any:
    """An `onnx.ModelProto`; `operator` is what rolls a loop. With state `none` every call starts from zeros.

    Fused: x [chunk, batch, input], y [chunk, 1, batch, output] or [chunk, batch, 2, output], states
    [layers·directions, batch, size]. Authored: x [chunk·batch, input], y [chunk·batch, width], states
    [rows·batch, size]. With `rows_apart` each row of a state array is an input and an output (`row_names`), for a
    reader that would call a kernel to take the array apart; a compound in one program has whole arrays. Raises
    BuildError for what `unsupported` gives a reason.
    """
    from onnx import helper

    if request.file is not None:
        from rnnbench.backends.shared.onnx_graphs.file_graph import file_graph

        return file_graph(request, request.file)
    if reason := unsupported(request):
        raise BuildError(reason)
    e = emitter(np.dtype(request.precision.state), int8=request.precision.activations)
    if isinstance(request.model, CompoundNetwork):
        inputs, outputs = _compound(e, request, request.model, operator)
    elif isinstance(request.model, Model) and request.strategy.time == FUSED:
        inputs, outputs = _fused(e, request, rows_apart)
    else:
        inputs, outputs = _authored(e, request, operator, rows_apart)
    graph = e.graph(request.model.label, inputs, outputs)
    return helper.make_model(
        graph,
        producer_name="rnnbench",
        opset_imports=[helper.make_opsetid("", OPSET), *(helper.make_opsetid(domain, 1) for domain in e.domains)],
        ir_version=IR_VERSION,
    )


def _fused(e: Emitter, request: Request, rows_apart: bool) -> tuple[list[Array], list[Array]]:
    model, chunk, batch = request.stack, request.strategy.chunk, request.batch
    x = e.array("x", chunk, batch, model.input, exact=True)
    lengths = [Array("lengths", (batch,), np.dtype(np.int32))] if request.ragged else []
    ends = lengths[0].name if lengths else ""
    states = _states(e, request, (1,), rows_apart)
    by_layer = zip(*(_rows(e, arrays, model.layers) for arrays in states.values()), strict=True)
    y, finals = x.name, []
    for layer in range(model.layers):
        if layer:
            y = e.reshape(y, chunk, batch, model.width)
        rows = range(layer * model.directions, (layer + 1) * model.directions)
        y, final = fused_layer(e, request, [request.weights.row(row) for row in rows], y, next(by_layer, ()), ends)
        finals.append(final)
    wide = (chunk, batch, 2, model.output) if model.directions == 2 else (chunk, 1, batch, model.output)
    after = _after(e, states, zip(*finals, strict=True))
    inputs = [*chain(*states.values())]
    return [x, *lengths, *inputs], _outputs(e, y, wide, inputs, after)


def _authored(
    e: Emitter, request: Request, operator: LoopOperator, rows_apart: bool
) -> tuple[list[Array], list[Array]]:
    network, steps, batch = request.model, request.strategy.chunk * request.batch, request.batch
    x = e.array("x", steps, network.input, exact=True)
    states = _states(e, request, (), rows_apart)
    rows = {}
    for name, (count, *shape) in network.state_shapes(batch).items():
        rows[name] = _rows(e, states[name], count) if states else [e.constant(np.zeros(shape, e.dtype))] * count
    before = state_by_layer(network, rows)
    finals = []

    def run(index: int, read: str) -> str:
        y, final = AuthoredLayer(e, request, index, operator).emit(read, before[index])
        finals.append(final)
        return y

    y = run_graph(network, x.name, run, e.concat)
    after = _after(e, states, state_by_array(network, finals).values())
    inputs = [*chain(*states.values())]
    # A state may be y, as an RNN's h of one step is.
    *after, y = e.distinct([*after, y], [x, *inputs])
    return [x, *inputs], _outputs(e, y, (steps, network.width), inputs, after)


def _compound(
    e: Emitter, request: Request, network: CompoundNetwork, operator: LoopOperator
) -> tuple[list[Array], list[Array]]:
    """As `_authored`, with the loop between the parts in the graph."""
    chunk, batch = request.strategy.chunk, request.batch
    loop, shapes = OnnxLoop(e, request, operator), network.state_shapes(batch)
    x = e.array("x", chunk, batch, network.input, exact=True)
    states = [*chain(*_states(e, request, (1,), rows_apart=False).values())]
    before = {state.name: Tensor(loop, state.name, state.shape, state.dtype) for state in states}
    before = before or {name: loop.arrays.zeros(shape, e.dtype) for name, shape in shapes.items()}
    y, after = network.advance_in_program(loop, Tensor(loop, x.name, x.shape, x.dtype), before)
    *values, last = e.distinct([*(after[state.name].name for state in states), y.name], [x, *states])
    return [x, *states], _outputs(e, last, (chunk, batch, network.width), states, values)


def _states(e: Emitter, request: Request, leading: tuple[int, ...], rows_apart: bool) -> State:
    """Rows have the shape [batch, size] after `leading`. They lie one after the other in a whole array."""
    if request.strategy.state == "none":
        return {}
    states = {}
    for name, (rows, *shape) in request.model.state_shapes(request.batch).items():
        names = row_names(name, rows if rows_apart else 1)
        first, *rest = (*leading, *shape)
        states[name] = [e.array(each, rows // len(names) * first, *rest, exact=True) for each in names]
    return states


def _rows(e: Emitter, arrays: Sequence[Array], rows: int) -> list[str]:
    """The rows of a state array."""
    return e.row_parts(arrays[0].name, rows) if len(arrays) == 1 else [array.name for array in arrays]


def _after(e: Emitter, states: State, rows: Iterable[Sequence[str]]) -> list[str]:
    """What the outputs for the states are, from the rows of each array; nothing where there are no states."""
    pairs = zip(states.values(), rows, strict=True) if states else ()
    return [*chain(*(values if len(arrays) > 1 else [e.stacked(values)] for arrays, values in pairs))]


def _outputs(e: Emitter, y: str, shape: tuple[int, ...], states: list[Array], after: list[str]) -> list[Array]:
    """y, and the state after the call, named and shaped as the state before it."""
    pairs = zip(states, after, strict=True)
    return [e.named(y, "y", shape), *(e.named(value, NEXT + state.name, state.shape) for state, value in pairs)]
