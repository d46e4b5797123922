"""An ONNX model in another floating-point type: its weights, its constants, its casts and the types of its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rnnbench.model_files.formats.onnx.file import require_onnx
from rnnbench.model_files.formats.onnx.tensors import all_nodes, all_tensors, graphs
from rnnbench.rnn import Arithmetic

_TYPES = {"Cast": "to", "EyeLike": "dtype", "SequenceEmpty": "dtype", "DequantizeLinear": "output_dtype"}
"""Attributes that name the type of an output, by operator. Those of windows are `output_datatype`."""
_OF_WINDOWS, _WINDOWS = "output_datatype", ("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")


def retyped(model: Any, arithmetic: Arithmetic) -> Any:
    """A copy of a ModelProto in which all of float32, float16 and bfloat16 is the type that `arithmetic` computes with.

    Weights are rounded to the arithmetic's dtype. A float64 of the file stays one.
    """
    onnx = require_onnx()
    kinds = onnx.TensorProto
    narrow = (kinds.FLOAT, kinds.FLOAT16, kinds.BFLOAT16)
    carrier = onnx.helper.np_dtype_to_tensor_dtype(arithmetic.carrier)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in all_nodes(copy):
        _explicit(onnx, node)
        name = _OF_WINDOWS if node.op_type in _WINDOWS else _TYPES.get(node.op_type)
        for attribute in node.attribute:
            if attribute.name == name and attribute.i in narrow:
                attribute.i = carrier
    for tensor in all_tensors(copy):
        if tensor.data_type in narrow:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(arithmetic.cast(values), tensor.name))
    for value in _values(copy):
        if value.type.tensor_type.elem_type in narrow:
            value.type.tensor_type.elem_type = carrier
    return copy


def narrow_values(model: Any) -> dict[str, str]:
    """The values that the file has in float16 or bfloat16, with the name of their type.

    If the file has an input or output of float64, its values in float32 are among them too.
    """
    onnx = require_onnx()
    kinds = {onnx.TensorProto.FLOAT16: "float16", onnx.TensorProto.BFLOAT16: "bfloat16"}
    ends = [value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)]
    if onnx.TensorProto.DOUBLE in ends:
        kinds[onnx.TensorProto.FLOAT] = "float32"
    stored = any(tensor.data_type in kinds for tensor in all_tensors(model))
    if not stored and not any(a.name == "to" and a.i in kinds for node in all_nodes(model) for a in node.attribute):
        return {}
    inferred = require_onnx("onnx.shape_inference").infer_shapes(model)
    types = ((value.name, value.type.tensor_type.elem_type) for value in _values(inferred))
    return {name: kinds[kind] for name, kind in types if kind in kinds}


def _values(model: Any) -> Iterator[Any]:
    for graph in graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.HasField("tensor_type"):
                yield value


def _explicit(onnx: Any, node: Any) -> None:
    """Constants that are no tensors become tensors, and a default that is a float32 is written down."""
    if node.op_type == "ConstantOfShape" and not node.attribute:
        zero = onnx.numpy_helper.from_array(np.zeros(1, np.float32))
        node.attribute.append(onnx.helper.make_attribute("value", zero))
    if node.op_type in _WINDOWS and all(attribute.name != _OF_WINDOWS for attribute in node.attribute):
        node.attribute.append(onnx.helper.make_attribute(_OF_WINDOWS, onnx.TensorProto.FLOAT))
    if node.op_type != "Constant":
        return
    for attribute in list(node.attribute):
        if attribute.name in ("value_float", "value_floats"):
            numbers = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            del node.attribute[:]
            tensor = onnx.numpy_helper.from_array(np.array(numbers, np.float32))
            node.attribute.append(onnx.helper.make_attribute("value", tensor))
