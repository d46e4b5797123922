"""What is in an ONNX file."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.axes import AxisSearch
from rnnbench.model_files.describing import LONGEST_NAME, FileFacts, build_description
from rnnbench.model_files.description import ArrayDescription, Dim, FileDescription, Role
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.flow import flow_of
from rnnbench.model_files.formats.onnx.features import depends_of, features_of, features_of_fused
from rnnbench.model_files.formats.onnx.file import graph_inputs, read_onnx, require_onnx, type_names
from rnnbench.model_files.formats.onnx.fused import in_own_operators
from rnnbench.model_files.formats.onnx.quantised import activations_of
from rnnbench.model_files.formats.onnx.tensors import all_nodes, graphs, is_external, shape_of
from rnnbench.model_files.state_proposals import LAST_OF_BOTH, last_of_both, with_proposals
from rnnbench.outside_text import safe_text

_FEW = 8
"""Elements of a tensor that may name axes."""


def describe(path: Path) -> FileDescription:
    """What is in the file. Raises ModelFileError with a sentence, and MissingExtraError without onnx."""
    file = read_onnx(path)
    model, own = file.model, _in_own_operators(file.model)
    graph, flow = model.graph, flow_of(own.graph)
    inputs = [_array(value, "input") for value in graph_inputs(graph)]
    outputs = [_array(value, "output") for value in graph.output]
    if all(isinstance(dim, int) for array in inputs for dim in array.shape or (None,)):
        outputs = _with_inferred_sizes(outputs, file.model)
    axes = AxisSearch(flow, {tensor.name for tensor in graph.initializer}, _integers(graph)).run()
    description = build_description(
        FileFacts(
            file=path.name,
            format="onnx",
            opsets={safe_text(entry.domain, LONGEST_NAME): entry.version for entry in model.opset_import},
            producer=safe_text(f"{model.producer_name} {model.producer_version}".strip(), LONGEST_NAME),
            operators=Counter(_operator(node) for node in all_nodes(model)),
            weight_bytes=file.weight_bytes,
            external=file.external,
            activations=activations_of(own),
            features=(*features_of(own), *features_of_fused(model)),
            depends=depends_of(own),
        ),
        inputs,
        outputs,
        flow,
        axes,
        starts=file.starts,
        unused=_unused(model),
    )
    return with_proposals(description, last_of_both(description), LAST_OF_BOTH)


def _in_own_operators(model: Any) -> Any:
    """The model without fused operators."""
    try:
        return in_own_operators(model)
    except ModelFileError:
        return model  # The oracle will say what is wrong with such a file.


def _unused(model: Any) -> set[str]:
    """Names of the inputs that no operator takes, and that are no output."""
    used = {name for node in all_nodes(model) for name in node.input}
    used |= {value.name for graph in graphs(model) for value in graph.output}
    return {value.name for value in graph_inputs(model.graph)} - used


def _operator(node: Any) -> str:
    is_of_onnx = node.domain in ("", "ai.onnx")
    return safe_text(node.op_type if is_of_onnx else f"{node.domain}.{node.op_type}", LONGEST_NAME)


def _array(value: Any, role: Role) -> ArrayDescription:
    name = type_names()[value.type.tensor_type.elem_type]
    kind = {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())
    return ArrayDescription(value.name, role, shape_of(value), kind)


def _with_inferred_sizes(outputs: list[ArrayDescription], model: Any) -> list[ArrayDescription]:
    """Outputs with the sizes that ONNX infers where the file leaves them open."""
    onnx = require_onnx()
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output
    except (onnx.shape_inference.InferenceError, RuntimeError):
        return outputs  # The oracle will say what is wrong with such a file.
    shapes = {value.name: _array(value, "output").shape for value in inferred}
    return [replace(array, shape=_filled(array.shape, shapes.get(array.name))) for array in outputs]


def _filled(shape: tuple[Dim, ...] | None, inferred: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    if shape is None or inferred is None or len(shape) != len(inferred):
        return shape
    pairs = zip(shape, inferred, strict=True)
    return tuple(own if isinstance(own, int) or not isinstance(other, int) else other for own, other in pairs)


def _integers(graph: Any) -> dict[str, np.ndarray]:
    """Small integer weights and constants, which name the axes that a node adds or takes away."""
    onnx = require_onnx()
    constants = [
        (node.output[0], attribute.t)
        for node in graph.node
        if node.op_type == "Constant" and node.output
        for attribute in node.attribute
        if attribute.name == "value"
    ]
    tensors = [*((tensor.name, tensor) for tensor in graph.initializer), *constants]
    return {
        name: onnx.numpy_helper.to_array(tensor).reshape(-1)
        for name, tensor in tensors
        if tensor.data_type == onnx.TensorProto.INT64 and not is_external(tensor) and math.prod(tensor.dims) <= _FEW
    }
