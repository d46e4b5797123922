"""A request as a model in OpenVINO's opset: from x (and h, c) to y (and next_h, next_c), or with state in variables.

A state is [layers·directions·batch, size]. Authored models have x [chunk·batch, input] and y [chunk·batch, width], in
the memory order of the suite. The operators have the batch first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as opset

from rnnbench.backends.base import Request
from rnnbench.backends.openvino.authored import AuthoredLayer, State
from rnnbench.backends.openvino.nodes import Nodes, Value
from rnnbench.backends.openvino.sequence import fused_layer
from rnnbench.backends.shared.onnx_graphs import NEXT

Rows = list[State]
"""h (and c), [batch, size] each, of every row of the state."""


def opset_model(request: Request) -> Any:
    """An `openvino.Model`. `none` starts from zeros; `stitched` has parameters and results; `stateful` variables."""
    nodes = Nodes()
    model, strategy, batch = request.stack, request.strategy, request.batch
    before: dict[str, Any] = {}
    for name, (rows, _, size) in model.state_shapes(batch).items():
        if strategy.state == "stitched":
            before[name] = nodes.parameter([rows * batch, size], name)
        else:
            before[name] = nodes.constant(np.zeros((rows * batch, size), np.float32)).get_node()
        if strategy.state == "stateful":
            before[name] = nodes.named(opset.read_value(before[name], name, np.float32, [rows * batch, size]))
    parts = [nodes.rows(node.output(0), model.layers * model.directions) for node in before.values()]
    emit = _fused if strategy.time == "fused" else _authored
    parameters, y, finals = emit(nodes, request, list(zip(*parts, strict=True)))
    columns = zip(*finals, strict=True) if strategy.state != "none" else ()
    after = {name: nodes.joined(list(values)) for name, values in zip(before, columns, strict=False)}
    # A result renames the value that it is given, and y of one step is also its h.
    y = nodes.reshape(y, *y.get_shape()) if y in after.values() else y
    results, sinks = [_result(nodes, y, "y")], []
    if strategy.state == "stitched":
        results += [_result(nodes, value, NEXT + name) for name, value in after.items()]
        parameters += before.values()
    if strategy.state == "stateful":
        sinks = [_assigned(nodes, value, name) for name, value in after.items()]
    for parameter in parameters:
        parameter.output(0).get_tensor().set_names({parameter.get_friendly_name()})
    return ov.Model(results, sinks, parameters, model.cell)


def _fused(nodes: Nodes, request: Request, rows: Rows) -> tuple[list[Any], Value, Rows]:
    """From x [batch, chunk, input] to y [batch, directions, chunk, size], the operators' order: nothing is transposed.

    Unless the request is ragged, the lengths of the rows are a constant.
    """
    model, chunk, batch = request.stack, request.strategy.chunk, request.batch
    parameters = [nodes.parameter([batch, chunk, model.input], "x")]
    if request.ragged:
        parameters.append(nodes.parameter([batch], "lengths", np.int32))
        lengths = parameters[1].output(0)
    else:
        lengths = nodes.constant(np.full(batch, chunk, np.int32))
    y, finals = parameters[0].output(0), Rows()
    for layer in range(model.layers):
        numbers = range(layer * model.directions, (layer + 1) * model.directions)
        before = [_side_by_side(nodes, values) for values in zip(*(rows[n] for n in numbers), strict=True)]
        if layer:
            side_by_side = nodes.transpose(y, 0, 2, 1, 3) if model.directions > 1 else y
            y = nodes.reshape(side_by_side, batch, chunk, model.width)
        y, final = fused_layer(nodes, request, [request.weights.row(n) for n in numbers], y, before, lengths)
        if model.directions == 1:
            finals.append([nodes.reshape(value, batch, value.get_shape()[2]) for value in final])
    return parameters, y, finals


def _side_by_side(nodes: Nodes, values: Iterable[Value]) -> Value:
    """A state of each direction, [batch, size], as [batch, directions, size]."""
    return nodes.joined([nodes.reshape(v, v.get_shape()[0], 1, v.get_shape()[1]) for v in values], axis=1)


def _authored(nodes: Nodes, request: Request, rows: Rows) -> tuple[list[Any], Value, Rows]:
    model = request.stack
    x = nodes.parameter([request.strategy.chunk * request.batch, model.input], "x")
    y, finals = x.output(0), Rows()
    for layer in range(model.layers):
        outputs = []
        for row in range(layer * model.directions, (layer + 1) * model.directions):
            output, final = AuthoredLayer(nodes, request, row).emit(y, rows[row])
            outputs.append(output)
            finals.append(final)
        y = nodes.joined(outputs, axis=1)
    return [x], y, finals


def _result(nodes: Nodes, value: Value, name: str) -> Any:
    result = nodes.named(opset.result(value), f"result_{name}")
    result.output(0).get_tensor().set_names({name})
    return result


def _assigned(nodes: Nodes, value: Value, name: str) -> Any:
    """Assign takes a node and reads its first output, so the value is made the first output of a reshape."""
    return nodes.named(opset.assign(nodes.reshape(value, *value.get_shape()).get_node(), name))
