"""States of an ONNX file that have a default value: inputs that are initialisers too, which a caller may leave out.

The caller gives them, as every state, so the default is taken out of the graph. Other inputs with a default keep
it: weights, which older files list among their inputs, and settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnbench.model_files.description import ArrayDescription
from rnnbench.model_files.flow import flow_of
from rnnbench.model_files.formats.onnx.tensors import declared_bytes, external_of, is_external, shape_of
from rnnbench.model_files.state_pairs import certain_pairs
from rnnbench.optional import require

_DEFAULTS_FROM = 4
"""The first version of ONNX's format in which an initialiser is an input only where its value is a default."""


def without_defaults(model: Any, folder: Path, type_names: dict[int, str]) -> frozenset[str]:
    """Takes the defaults of states out of the model's graph. Returns the states whose default is not zero.

    `folder` has the files with weights. A state is found by its operator or by its name, never by its shape alone.
    """
    graph, input_names = model.graph, {value.name for value in model.graph.input}
    defaults = {tensor.name: tensor for tensor in graph.initializer if tensor.name in input_names}
    if not defaults or model.ir_version < _DEFAULTS_FROM:
        return frozenset()
    inputs, outputs = ([_array(value) for value in side] for side in (graph.input, graph.output))
    states = {pair.before for pair in certain_pairs(flow_of(graph), inputs, outputs)} & defaults.keys()
    kept = [tensor for tensor in graph.initializer if tensor.name not in states]
    starts = frozenset(name for name in states if _is_any(defaults[name], folder, type_names))
    if states:
        del graph.initializer[:]
        graph.initializer.extend(kept)
    return starts


def _array(value: Any) -> ArrayDescription:
    return ArrayDescription(value.name, "input", shape_of(value), str(value.type.tensor_type.elem_type))


def _is_any(tensor: Any, folder: Path, type_names: dict[int, str]) -> bool:
    """Whether an element is not zero."""
    if not is_external(tensor):
        return bool(require("onnx.numpy_helper", "files", "reading a model file").to_array(tensor).any())
    where = external_of(tensor, folder, declared_bytes(tensor, type_names))
    with where.file.open("rb") as file:
        file.seek(where.offset)
        return any(file.read(where.length))
