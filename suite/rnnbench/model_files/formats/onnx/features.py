"""What an ONNX file contains that compilers are known to get wrong, and which outputs depend on which inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from rnnbench.model_files.description import Dim, Feature
from rnnbench.model_files.formats.onnx.file import graph_inputs, require_onnx
from rnnbench.model_files.formats.onnx.fused import MICROSOFT
from rnnbench.model_files.formats.onnx.quantised import activations_of
from rnnbench.model_files.formats.onnx.tensors import graphs, names_inside, opset_version, shape_of, subgraphs
from rnnbench.model_files.traits import SEVEN_BITS, Operation, dependences, reached, sources

_SHAPES = frozenset(("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"))
"""Operators that give their first input, or that in another shape."""
_BEFORE_QUANTISERS = _SHAPES | {"Relu"}
_BEFORE_CONVOLUTIONS = _BEFORE_QUANTISERS | {"MaxPool", "Slice", "Transpose"}
"""Operators behind which OpenVINO still finds the Concat, or the quantised Concat."""
_ACTIVATIONS = (b"sigmoid", b"tanh", b"relu")
"""Those of recurrent operators that every importer knows."""
_WITH_ALPHA = (b"affine", b"leakyrelu", b"thresholdedrelu", b"scaledtanh", b"hardsigmoid", b"elu")
"""Those that take an alpha. Each takes the next one of `activation_alpha`."""
_NESTED = 3
"""Ifs in each other, of which ONNX Runtime loses a value."""
_SOFTMAX = range(11, 13)
"""Versions of a Softmax that takes an axis and all that follow for one, and that OpenVINO reads as a later one."""
_REDUCTIONS = range(13, 18)
"""Versions of reductions whose axes are an attribute, and that OpenVINO reads as later ones."""
_CHANNELS = 1
"""The axis to which OpenVINO gives slopes of a PRelu that are as many as it is long."""


def depends_of(model: Any) -> dict[str, tuple[str, ...]]:
    """The inputs that each output is computed from."""
    inputs = {value.name: value.name for value in graph_inputs(model.graph)}
    return dependences(_operations(model.graph), inputs, {value.name: value.name for value in model.graph.output})


def features_of(model: Any) -> Iterator[Feature]:
    """The features of the outermost graph and of the graphs inside it. A function counts where it is called."""
    outputs = {value.name: value.name for value in model.graph.output}
    file = _File(model)
    values_by_feature: dict[str, set[str]] = {}
    wide = _of_16_bits(model.graph)
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and not wide.isdisjoint(node.input):
            values_by_feature.setdefault("two-byte-arrays", set()).update(node.output)
        for name in set(_features_of_node(node, file, ())):
            values_by_feature.setdefault(name, set()).update(node.output)
    if values := _convolutions_of_outputs(model.graph):
        values_by_feature["convolution-of-an-output"] = values
    for name, values in _quantised_concats(model.graph).items():
        values_by_feature[name] = values
    if values := _bfloat16_lists(model.graph):
        values_by_feature["bfloat-lists"] = values
    if activations_of(model) == "static" and (values := _large_bytes(model.graph)):
        values_by_feature["eight-bit-products"] = values
    for name, values in values_by_feature.items():
        yield Feature(name, reached(_operations(model.graph), values, outputs))
    if rings := _rings(model.graph):
        yield Feature("ring", rings)


def features_of_fused(model: Any) -> Iterator[Feature]:
    """The features of operators that stand for several of ONNX's own."""
    values = {name for node in model.graph.node if _has_activated_gemm(node) for name in node.output}
    if values:
        outputs = {value.name: value.name for value in model.graph.output}
        yield Feature("fused-gemm", reached(_operations(model.graph), values, outputs))


def _has_activated_gemm(node: Any) -> bool:
    """Whether it is a FusedGemm whose activation is no Relu or LeakyRelu, or has one inside."""
    if (node.domain, node.op_type) == (MICROSOFT, "FusedGemm"):
        return any(each.name == "activation" and each.s not in (b"Relu", b"LeakyRelu") for each in node.attribute)
    return any(_has_activated_gemm(inner) for graph in subgraphs(node) for inner in graph.node)


class _File:
    """What the features of a node depend on beside the node."""

    def __init__(self, model: Any) -> None:
        self.version = opset_version(model)
        self.functions = {(function.domain, function.name): function for function in model.functions}
        self._model = model

    @cached_property
    def shapes(self) -> dict[str, tuple[Dim, ...]]:
        """The shape of each value, as far as ONNX infers it."""
        onnx, model = require_onnx(), self._model
        with suppress(onnx.shape_inference.InferenceError, RuntimeError):
            model = onnx.shape_inference.infer_shapes(model)
        values = [value for graph in graphs(model) for value in (*graph.input, *graph.value_info, *graph.output)]
        shapes = {value.name: shape for value in values if (shape := shape_of(value)) is not None}
        return shapes | {tensor.name: tuple(tensor.dims) for graph in graphs(model) for tensor in graph.initializer}


def _features_of_node(node: Any, file: _File, callers: tuple[Any, ...]) -> Iterator[str]:
    """The features of the node itself, of the graphs inside it, and of the function that it calls."""
    if node.domain in ("", "ai.onnx"):
        yield from _features_of_operator(node, file)
    for graph in subgraphs(node):
        for inner in graph.node:
            yield from _features_of_node(inner, file, callers)
    key = (node.domain, node.op_type)
    if key in file.functions and key not in callers:
        for inner in file.functions[key].node:
            yield from _features_of_node(inner, file, (*callers, key))


def _features_of_operator(node: Any, file: _File) -> Iterator[str]:
    """The features of a node of ONNX's own operators, without the graphs inside it."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type in ("LSTM", "GRU", "RNN"):
        yield from _features_of_recurrent(node, attributes)
    if node.op_type == "If" and _ifs(node) >= _NESTED:
        yield "nested-ifs"
    if node.op_type == "Scan":
        directions = ("directions", "scan_input_directions", "scan_output_directions")
        if any(1 in attributes[name].ints for name in directions if name in attributes):
            yield "backward-scan"
    if node.op_type == "Conv" and any(step > 1 for step in _integers(attributes, "strides")):
        yield "strided-convolution"
    if _is_older(node, file):
        yield "older-operators"
    if node.op_type == "PRelu" and _has_slopes_of_channels(node, file):
        yield "slopes-of-one-axis"


def _features_of_recurrent(node: Any, attributes: Mapping[str, Any]) -> Iterator[str]:
    """The features of an LSTM, a GRU or an RNN."""
    chosen = [name.lower() for name in attributes["activations"].strings] if "activations" in attributes else []
    if node.op_type != "RNN" and any(name not in _ACTIVATIONS for name in chosen):
        yield "other-activations"
    alphas = len(attributes["activation_alpha"].floats) if "activation_alpha" in attributes else 0
    if b"thresholdedrelu" in [name for name in chosen if name in _WITH_ALPHA][alphas:]:
        yield "default-threshold"
    one_way = len(chosen) // 2
    is_both_ways = "direction" in attributes and attributes["direction"].s == b"bidirectional"
    if is_both_ways and chosen[:one_way] != chosen[one_way:]:
        yield "unlike-directions"
    if "layout" in attributes and attributes["layout"].i:
        yield "rows-first-operator"
    if node.op_type == "LSTM" and any(node.input[7:8]):
        yield "peepholes"
    if node.op_type == "LSTM" and "input_forget" in attributes and attributes["input_forget"].i:
        yield "joint-gates"
    if node.op_type == "RNN" and "clip" in attributes:
        yield "clipped-rnn"


def _ifs(node: Any) -> int:
    """How many Ifs are in each other, in this node and the graphs inside it."""
    inside = max((_ifs(inner) for graph in subgraphs(node) for inner in graph.node), default=0)
    return inside + int(node.op_type == "If")


def _integers(attributes: dict[str, Any], name: str) -> list[int]:
    return list(attributes[name].ints) if name in attributes else []


def _is_older(node: Any, file: _File) -> bool:
    """Whether OpenVINO reads it as an operator of a later version."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "Softmax" and file.version in _SOFTMAX:
        shape, axis = file.shapes.get(node.input[0], ()), attributes["axis"].i if "axis" in attributes else 1
        return axis not in (-1, len(shape) - 1)
    is_reduction = node.op_type in ("ReduceL1", "ReduceLogSum", "ReduceLogSumExp")
    return is_reduction and file.version in _REDUCTIONS and "axes" in attributes


def _has_slopes_of_channels(prelu: Any, file: _File) -> bool:
    """Whether the axis of channels may be as long as slopes that are those of the last axis."""
    x, slopes = (file.shapes.get(name) for name in prelu.input)
    if slopes is None or len(slopes) != 1 or slopes[0] == 1:
        return False
    if x is None:
        return True
    channels = x[_CHANNELS] if len(x) - 1 > _CHANNELS else 1
    return channels == slopes[0] or not isinstance(channels, int)


def _makers(graph: Any) -> dict[str, tuple[str, str]]:
    return {name: (node.op_type, node.input[0] if node.input else "") for node in graph.node for name in node.output}


def _quantised_concats(graph: Any) -> dict[str, set[str]]:
    """What DequantizeLinear gives of a Concat, by what is wrong with those that take it."""
    makers, found = _makers(graph), dict[str, set[str]]()

    def concat(value: str, movers: Collection[str]) -> str | None:
        """The dequantised Concat that a value is made of."""
        *_, (dequantised, operator) = sources(value, makers, movers)
        quantiser, before = makers.get(makers[dequantised][1], ("", "")) if operator == "DequantizeLinear" else ("", "")
        *_, (_, first) = sources(before, makers, _BEFORE_QUANTISERS)
        return dequantised if (quantiser, first) == ("QuantizeLinear", "Concat") else None

    for node in graph.node:
        has_bytes = node.op_type == "Conv" and makers.get(node.input[1], ("", ""))[0] == "DequantizeLinear"
        if has_bytes and (value := concat(node.input[0], _BEFORE_CONVOLUTIONS)):
            found.setdefault("quantised-concat", set()).add(value)
        if node.op_type == "QuantizeLinear" and (value := concat(node.input[0], ())):
            found.setdefault("concat-quantised-twice", set()).add(value)
    return found


def _convolutions_of_outputs(graph: Any) -> set[str]:
    """What convolutions give of a transposed value that is an output too, but for its shape."""
    makers = _makers(graph)
    kept = {value for end in graph.output for value, _ in sources(end.name, makers, _SHAPES)}
    values = set[str]()
    for node in graph.node:
        if node.op_type in ("Conv", "ConvTranspose"):
            way = [*sources(node.input[0], makers, {*_SHAPES, "Transpose"})]
            turned = next((place for place, (_, operator) in enumerate(way) if operator == "Transpose"), len(way))
            # A value that nothing makes is an input.
            if any(value in kept and operator not in ("", "Transpose") for value, operator in way[turned + 1 :]):
                values.update(node.output)
    return values


def _bfloat16_lists(graph: Any) -> set[str]:
    """Names of the weights and constants in bfloat16 that are a list of numbers, and no bytes.

    Of one in an inner graph, what its node gives.
    """

    def is_list(tensor: Any) -> bool:
        return tensor.data_type == tensor.BFLOAT16 and bool(tensor.int32_data)

    found = {tensor.name for tensor in graph.initializer if is_list(tensor)}
    for node in graph.node:
        if any(is_list(attribute.t) for attribute in node.attribute) or any(map(_bfloat16_lists, subgraphs(node))):
            found.update(node.output)
    return found


def _large_bytes(graph: Any) -> set[str]:
    """What DequantizeLinear gives of weights in bytes beyond 64."""
    to_array = require_onnx().numpy_helper.to_array
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    found = set[str]()
    for node in graph.node:
        weights = tensors.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if weights is not None and weights.data_type in (weights.INT8, weights.UINT8):
            zeros = [int(to_array(tensors[name]).max()) for name in node.input[2:3] if name in tensors]
            if (np.abs(to_array(weights).astype(np.int16) - sum(zeros)) > SEVEN_BITS).any():
                found.update(node.output)
    return found


def _of_16_bits(graph: Any) -> set[str]:
    """Names of the weights and constants in int16 or uint16. A QuantizeLinear has the type of its zero point."""
    constants = [(a.t, node.output[0]) for node in graph.node if node.op_type == "Constant" for a in node.attribute]
    tensors = [*((tensor, tensor.name) for tensor in graph.initializer), *constants]
    return {name for tensor, name in tensors if tensor.data_type in (tensor.INT16, tensor.UINT16)}


def _rings(graph: Any) -> tuple[str, ...]:
    """Inputs of which a slice is an output together with other values, by a Concat."""
    makers = {name: node for node in graph.node for name in node.output}
    rings = set[str]()
    for output in graph.output:
        node = makers.get(output.name)
        while node is not None and node.op_type == "Identity":
            node = makers.get(node.input[0])
        if node is not None and node.op_type == "Concat":
            parts = [makers.get(name) for name in node.input]
            rings |= {part.input[0] for part in parts if part is not None and part.op_type == "Slice"}
    return tuple(value.name for value in graph_inputs(graph) if value.name in rings)


def _operations(graph: Any) -> Iterator[Operation]:
    for node in graph.node:
        yield Operation({*node.input, *names_inside(node)} - {""}, [name for name in node.output if name])
