"""A request as an ONNX model: x (and h, c) to y (and next_h, next_c), every array of a fixed shape.

Arrays have the suite's layout in memory and the shapes that the nodes need. A reader makes a view of them, which is
free; a node that changes a shape would cost a copy in every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared.onnx_graphs.authored import AuthoredLayer, LoopOperator
from rnnbench.backends.shared.onnx_graphs.emitter import Array, Emitter
from rnnbench.backends.shared.onnx_graphs.fused import fused_layer
from rnnbench.backends.shared.onnx_graphs.support import NEXT, unsupported

OPSET = 17
IR_VERSION = 8
"""The version of 2022, which every reader here supports."""

Shapes = Mapping[str, tuple[int, ...]]


def build_graph(request: Request, operator: LoopOperator = "Scan") -> Any:
    """An `onnx.ModelProto`; `operator` is what rolls a loop. With state `none` every call starts from zeros.

    Fused: x [chunk, batch, input], y [chunk, 1, batch, output] or [chunk, batch, 2, output], states
    [layers·directions, batch, size]. Authored: x [chunk·batch, input], y [chunk·batch, width], states
    [layers·directions·batch, size]. Raises BuildError for what `unsupported` gives a reason.
    """
    from onnx import helper

    if request.file is not None:
        from rnnbench.backends.shared.onnx_graphs.file_graph import file_graph

        return file_graph(request, request.file)
    if reason := unsupported(request):
        raise BuildError(reason)
    e = Emitter(np.dtype(request.precision.compute))
    emit = _fused if request.strategy.time == "fused" else _authored
    inputs, outputs = emit(e, request, operator)
    graph = e.graph(request.stack.cell, inputs, outputs)
    return helper.make_model(
        graph, producer_name="rnnbench", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )


def _fused(e: Emitter, request: Request, _: LoopOperator) -> tuple[list[Array], list[Array]]:
    model, chunk, batch = request.stack, request.strategy.chunk, request.batch
    x = e.array("x", chunk, batch, model.input, exact=True)
    lengths = [Array("lengths", (batch,), np.dtype(np.int32))] if request.ragged else []
    ends = lengths[0].name if lengths else ""
    states = _states(e, request, dict(model.state_shapes(batch)))
    by_layer = zip(*(e.rows(state.name, model.layers) for state in states), strict=True) if states else iter(())
    y, finals = x.name, []
    for layer in range(model.layers):
        if layer:
            y = e.reshape(y, chunk, batch, model.width)
        rows = range(layer * model.directions, (layer + 1) * model.directions)
        y, final = fused_layer(e, request, [request.weights.row(row) for row in rows], y, next(by_layer, ()), ends)
        finals.append(final)
    wide = (chunk, batch, 2, model.output) if model.directions == 2 else (chunk, 1, batch, model.output)
    return [x, *lengths, *states], [e.named(y, "y", wide), *_next(e, states, finals)]


def _authored(e: Emitter, request: Request, operator: LoopOperator) -> tuple[list[Array], list[Array]]:
    model, steps, batch = request.stack, request.strategy.chunk * request.batch, request.batch
    x = e.array("x", steps, model.input, exact=True)
    shapes = {name: (rows * batch, size) for name, (rows, _, size) in model.state_shapes(batch).items()}
    states = _states(e, request, shapes)
    count = model.layers * model.directions
    zeros = [e.constant(np.zeros((batch, size), e.dtype)) for _, size in shapes.values()]
    rows = list(zip(*(e.rows(state.name, count) for state in states), strict=True)) or [tuple(zeros)] * count
    y, finals = x.name, []
    for layer in range(model.layers):
        outputs = []
        for row in range(layer * model.directions, (layer + 1) * model.directions):
            output, final = AuthoredLayer(e, request, row, operator).emit(y, rows[row])
            outputs.append(output)
            finals.append(final)
        y = outputs[0] if len(outputs) == 1 else e.one("Concat", *outputs, axis=1)
    # One array cannot be two outputs, and y of one step is its h.
    y = e.one("Identity", y) if states and y == finals[-1][0] else y
    return [x, *states], [e.named(y, "y", (steps, model.width)), *_next(e, states, finals)]


def _states(e: Emitter, request: Request, shapes: Shapes) -> list[Array]:
    if request.strategy.state == "none":
        return []
    return [e.array(name, *shape, exact=True) for name, shape in shapes.items()]


def _next(e: Emitter, states: list[Array], finals: list[Any]) -> list[Array]:
    """The state after the call, named and shaped as the state before it."""
    joined = [e.stacked(list(parts)) for parts in zip(*finals, strict=True)] if states else []
    return [e.named(value, NEXT + s.name, s.shape) for s, value in zip(states, joined, strict=True)]
