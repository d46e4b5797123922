"""A request as a model in OpenVINO's opset: from x (and the state, as h and c) to y (and next_h, next_c), or with the
state in variables.

A state is [rows·batch, size]. Authored models have x [chunk·batch, input] and y [chunk·batch, width], in
the memory order of the suite. The operators have the batch first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as opset

from rnnbench.backends.base import Request
from rnnbench.backends.openvino.authored import AuthoredLayer, State
from rnnbench.backends.openvino.nodes import Nodes, Value
from rnnbench.backends.openvino.sequence import fused_layer
from rnnbench.backends.shared.onnx_graphs import NEXT
from rnnbench.rnn import run_graph, state_by_array, state_by_layer

States = Sequence[State]
"""The state of every layer, [batch, size] each."""


def opset_model(request: Request) -> Any:
    """An `openvino.Model`. `none` starts from zeros; `stitched` has parameters and results; `stateful` variables."""
    nodes = Nodes(int8=request.precision.weights == "int8")
    network, strategy, batch = request.model, request.strategy, request.batch
    before: dict[str, Any] = {}
    rows: dict[str, list[Value]] = {}
    for name, (count, _, size) in network.state_shapes(batch).items():
        if strategy.state == "stitched":
            before[name] = nodes.parameter([count * batch, size], name)
        else:
            before[name] = nodes.constant(np.zeros((count * batch, size), np.float32)).get_node()
        if strategy.state == "stateful":
            before[name] = nodes.named(opset.read_value(before[name], name, np.float32, [count * batch, size]))
        rows[name] = nodes.row_parts(before[name].output(0), count)
    emit = _fused if strategy.time == "fused" else _authored
    parameters, y, finals = emit(nodes, request, state_by_layer(network, rows))
    after: dict[str, Value] = {}
    if strategy.state != "none":
        after = {name: nodes.joined(values) for name, values in state_by_array(network, finals).items()}
    inputs = [parameter.output(0) for parameter in (*parameters, *before.values())]
    *values, y = nodes.distinct([*after.values(), y], inputs)
    after = dict(zip(after, values, strict=True))
    results, sinks = [_result(nodes, y, "y")], []
    if strategy.state == "stitched":
        results += [_result(nodes, value, NEXT + name) for name, value in after.items()]
        parameters += before.values()
    if strategy.state == "stateful":
        sinks = [_assigned(nodes, value, name) for name, value in after.items()]
    for parameter in parameters:
        parameter.output(0).get_tensor().set_names({parameter.get_friendly_name()})
    return ov.Model(results, sinks, parameters, network.label)


def _fused(nodes: Nodes, request: Request, states: States) -> tuple[list[Any], Value, States]:
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
    y, finals = parameters[0].output(0), list[State]()
    for layer in range(model.layers):
        numbers = range(layer * model.directions, (layer + 1) * model.directions)
        before = [_side_by_side(nodes, values) for values in zip(*(states[n] for n in numbers), strict=True)]
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


def _authored(nodes: Nodes, request: Request, states: States) -> tuple[list[Any], Value, States]:
    x = nodes.parameter([request.strategy.chunk * request.batch, request.model.input], "x")
    finals: list[State] = []

    def run(index: int, read: Value) -> Value:
        y, final = AuthoredLayer(nodes, request, index).emit(read, states[index])
        finals.append(final)
        return y

    return [x], run_graph(request.model, x.output(0), run, nodes.concat), finals


def _result(nodes: Nodes, value: Value, name: str) -> Any:
    result = nodes.named(opset.result(value), f"result_{name}")
    result.output(0).get_tensor().set_names({name})
    return result


def _assigned(nodes: Nodes, value: Value, name: str) -> Any:
    """Assign takes a node and reads its first output, so the value is made the first output of a reshape."""
    return nodes.named(opset.assign(nodes.reshape(value, *value.get_shape()).get_node(), name))
