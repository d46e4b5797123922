"""`describe`: what is in a model file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.axes import Axes, AxisSearch, axes_by_name
from rnnbench.model_files.description import ArrayDescription, Dim, FileDescription, Question, Role
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.flow import Flow, flow_of
from rnnbench.model_files.onnx_file import OnnxFile, graph_inputs, read_onnx, require_onnx, type_names
from rnnbench.model_files.state_pairs import pair_states, state_notes
from rnnbench.model_files.tensors import all_nodes, is_external
from rnnbench.outside_text import safe_text

_LONGEST_NAME = 100
_FEW = 8
"""Elements of a tensor that may name axes."""
_LENGTHS = 4
"""Index of `sequence_lens` in the inputs of a recurrent operator."""


def describe(path: Path) -> FileDescription:
    """What is in the file. Raises ModelFileError with a sentence, and MissingExtraError without onnx.

    Call it in a process of its own with limits of memory and time (`worker.describe_file`).
    """
    try:
        return _describe(path, read_onnx(path))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _describe(path: Path, file: OnnxFile) -> FileDescription:
    graph, flow = file.model.graph, flow_of(file.model.graph)
    inputs = [_array(value, "input") for value in graph_inputs(graph)]
    outputs = [_array(value, "output") for value in graph.output]
    pairing = pair_states(flow, inputs, outputs)
    before, after = {pair.before for pair in pairing.pairs}, {pair.after for pair in pairing.pairs}
    axes = AxisSearch(flow, {tensor.name for tensor in graph.initializer}, _integers(graph)).run()
    axes |= {pair.after: axes[pair.before] for pair in pairing.pairs if pair.before in axes}
    arrays = (
        *(_with_role(one, "state_in" if one.name in before else "input", axes) for one in inputs),
        *(_with_role(one, "state_out" if one.name in after else "output", axes) for one in outputs),
    )
    model = file.model
    operators = Counter(_operator(node) for node in all_nodes(model))
    return FileDescription(
        file=path.name,
        format="onnx",
        opsets={safe_text(entry.domain, _LONGEST_NAME): entry.version for entry in model.opset_import},
        producer=safe_text(f"{model.producer_name} {model.producer_version}".strip(), _LONGEST_NAME),
        nodes=operators.total(),
        operators=dict(operators.most_common()),
        weight_bytes=file.weight_bytes,
        external=tuple(safe_text(name, _LONGEST_NAME) for name in file.external),
        arrays=arrays,
        state=pairing.pairs,
        questions=(*pairing.questions, *_questions(arrays)),
        notes=tuple(_notes(flow, arrays)),
    )


def _operator(node: Any) -> str:
    own = node.domain in ("", "ai.onnx")
    return safe_text(node.op_type if own else f"{node.domain}.{node.op_type}", _LONGEST_NAME)


def _array(value: Any, role: Role) -> ArrayDescription:
    tensor = value.type.tensor_type
    shape = tuple(map(_dim, tensor.shape.dim)) if tensor.HasField("shape") else None
    name = type_names()[tensor.elem_type]
    return ArrayDescription(value.name, role, shape, {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower()))


def _dim(dim: Any) -> Dim:
    if dim.HasField("dim_value"):
        if dim.dim_value < 0:
            return None
        return int(dim.dim_value)
    return safe_text(dim.dim_param, _LONGEST_NAME) or None


def _with_role(array: ArrayDescription, role: Role, axes: dict[str, Axes]) -> ArrayDescription:
    if role == "input" and array.shape == ():
        role = "constant"
    time, batch = axes.get(array.name, (None, None))
    by_name = axes_by_name(array.shape)
    time, batch = by_name[0] if time is None else time, by_name[1] if batch is None else batch
    if role.startswith("state"):
        time = None
    return ArrayDescription(array.name, role, array.shape, array.dtype, time, batch)


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


def _questions(arrays: tuple[ArrayDescription, ...]) -> Iterator[Question]:
    for array in arrays:
        if array.role == "constant":
            yield Question(array.name, "constants", f"it is one {array.dtype}. Which value has it in every call?")
    streams = [array for array in arrays if array.role == "input"]
    if not streams:
        return
    if len({(array.time, array.batch) for array in streams}) > 1:
        names = ", ".join(array.name for array in streams)
        yield Question(streams[0].name, "time", f"the axes of time and batch of {names} differ. Which are they?")
        return
    first = streams[0]
    open_axes = [axis for axis, size in enumerate(first.shape or ()) if not isinstance(size, int)]
    if first.time is None and any(axis != first.batch for axis in open_axes):
        yield Question(first.name, "time", "which axis is time? Null means that one call is one step.")
    if first.batch is None and any(axis != first.time for axis in open_axes):
        yield Question(first.name, "batch", "which axis is the batch? Null means that there is none.")


def _notes(flow: Flow, arrays: tuple[ArrayDescription, ...]) -> Iterator[str]:
    inputs = {array.name for array in arrays if array.role not in ("output", "state_out")}
    yield from state_notes(flow, inputs, {array.name for array in arrays} - inputs)
    if not flow.carried and not any(array.role == "state_in" for array in arrays):
        yield "No state was found, no recurrent operator and no loop: a call may be a function of its inputs alone."
    lengths = {name for _, values, _ in flow.recurrent if _LENGTHS in values for name in flow.sources(values[_LENGTHS])}
    for name in sorted(lengths & inputs):
        yield f"{name} gives the length of each sequence to a recurrent operator."
