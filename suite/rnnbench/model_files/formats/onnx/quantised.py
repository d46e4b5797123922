"""Arrays that an ONNX file quantises itself: a QuantizeLinear with a fixed scale, whose result is dequantised alone.

So `onnxruntime.quantization.quantize_static` writes them (QDQ). Both operators together are one range of values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.onnx.dynamic import MOVES, is_dynamic, is_own
from rnnbench.model_files.formats.onnx.file import require_onnx
from rnnbench.model_files.formats.onnx.tensors import all_nodes, graphs
from rnnbench.outside_text import safe_text
from rnnbench.rnn import Activations, Range

_MICROSOFT = "com.microsoft"
QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
_CHOOSE = ("Split", "MaxPool")
"""Operators that give some of the values that they get."""
_TYPES = ("int8", "uint8", "int16", "uint16")
_ADVICE = "quantise it with onnxruntime.quantization.quantize_static (QuantFormat.QDQ), or export it in float32"


def activations_of(model: Any) -> Activations:
    """How the file quantises what its operators give and take. Whether that is computed here, `fixed_ranges` says."""
    nodes = [*all_nodes(model)]
    if any(map(is_dynamic, nodes)):
        return "dynamic"
    return "static" if any(is_own(node, QUANTIZE) or _is_microsofts(node, QUANTIZE) for node in nodes) else ""


def use_onnx_quantisers(model: Any) -> None:
    """Rename QuantizeLinear and DequantizeLinear of `com.microsoft`: they compute what ONNX's own of later versions do.

    The quantiser writes them for 16 and 4 bits, where the file's version of the operators does not have these types.
    Source: docs/ContribOperators.md of ONNX Runtime.
    """
    for node in all_nodes(model):
        if _is_microsofts(node, QUANTIZE, _DEQUANTIZE):
            node.domain = ""


def _is_microsofts(node: Any, *operators: str) -> bool:
    return node.op_type in operators and bool(node.domain == _MICROSOFT)


def fixed_ranges(model: Any) -> dict[str, Range]:
    """The range of each value that a QuantizeLinear makes, and of what is moved from it, by name.

    The model has all of its weights, and fused operators are ONNX's own.

    Raises ModelFileError for a QuantizeLinear of which it is not known what a runtime makes.
    """
    nodes = [*all_nodes(model)]
    quantising = [node for node in nodes if is_own(node, QUANTIZE)]
    if not quantising:
        return {}
    if len(model.functions) or len([node for node in model.graph.node if is_own(node, QUANTIZE)]) < len(quantising):
        raise ModelFileError(f"it has a QuantizeLinear in an inner graph or a function; {_ADVICE}")
    constants = _constants(model)
    ranges = {node.output[0]: _range(node, constants) for node in quantising}
    ends = {value.name for graph in graphs(model) for value in graph.output}
    for node in model.graph.node:
        if is_own(node, *MOVES, *_CHOOSE) and node.input[0] in ranges:
            ranges.update(dict.fromkeys(node.output, ranges[node.input[0]]))
    for node in nodes:
        for place, name in enumerate(node.input):
            is_taken = is_own(node, _DEQUANTIZE) and name in ranges and _range(node, constants) == ranges[name]
            if name in ranges and not (place == 0 and (is_taken or is_own(node, *MOVES, *_CHOOSE))):
                raise ModelFileError(
                    f"what QuantizeLinear makes goes into {safe_text(node.op_type, 80)}, and not into a "
                    f"DequantizeLinear of the same scale and zero point; {_ADVICE}"
                )
    if ends & ranges.keys():
        raise ModelFileError(f"what a QuantizeLinear makes is an output; {_ADVICE}")
    return ranges


def _constants(model: Any) -> dict[str, np.ndarray]:
    """Weights and constants of one element, by name."""
    to_array = require_onnx().numpy_helper.to_array
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        for attribute in node.attribute:
            if is_own(node, "Constant") and attribute.name == "value":
                tensors[node.output[0]] = attribute.t
    return {name: to_array(tensor) for name, tensor in tensors.items() if all(size == 1 for size in tensor.dims)}


def _range(node: Any, constants: dict[str, np.ndarray]) -> Range:
    """The range of a QuantizeLinear, or of the DequantizeLinear behind it."""
    names = [*node.input, ""][1:3]
    if names[0] not in constants or (names[1] and names[1] not in constants):
        raise ModelFileError(f"{node.op_type} without one fixed scale and zero point is not computed here; {_ADVICE}")
    if {attribute.name for attribute in node.attribute} - {"axis"}:
        raise ModelFileError(f"{node.op_type} with other attributes than its axis is not computed here; {_ADVICE}")
    zero = constants[names[1]].reshape(-1)[0] if names[1] else np.uint8(0)
    scale = constants[names[0]].reshape(-1)[0]
    if zero.dtype.name not in _TYPES or scale.dtype != np.float32:
        raise ModelFileError(
            f"{node.op_type} of {zero.dtype.name} and a scale of {scale.dtype.name} is not computed here; {_ADVICE}"
        )
    if not (np.isfinite(scale) and scale > 0):
        raise ModelFileError(f"{node.op_type} has a scale that is not above 0")
    ends = np.iinfo(zero.dtype)
    return Range(float(scale), int(zero) - int(ends.min), int(ends.max) - int(ends.min))
