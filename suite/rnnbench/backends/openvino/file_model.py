"""A user's file that OpenVINO's frontends read (TFLite), from x and states to y and the next states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as opset

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared import from_file, native_shapes, to_file
from rnnbench.backends.shared.onnx_graphs import NEXT
from rnnbench.model_files import FileNetwork, main_first, tensor_names, unchanged_path


def file_model(request: Request, network: FileNetwork) -> tuple[bytes, Any]:
    """The file's bytes, its own graph first, and an `openvino.Model` of fixed shapes.

    Raises BuildError and ModelFileError.
    """
    chunk, batch = request.strategy.chunk, request.batch
    path = unchanged_path(network)
    names, data = tensor_names(path), main_first(path)
    try:
        read = _read(data)
        read.reshape({names[name]: list(shape) for name, shape in native_shapes(network, chunk, batch).items()})
    except RuntimeError as error:
        raise BuildError(f"OpenVINO refused the file: {error}") from error
    x = _parameter((chunk, batch, network.input), "x")
    shapes = network.state_shapes(batch)
    states = {name: _parameter(shape, name, network.state_dtype(name, "")) for name, shape in shapes.items()}
    arrays = to_file(
        _Ops(), network, x.output(0), {name: parameter.output(0) for name, parameter in states.items()}, chunk, batch
    )
    arrays |= {name: opset.constant(value).output(0) for name, value in network.constant_arrays(batch).items()}
    ends = {name: read.output(tensor).get_node() for name, tensor in names.items() if name not in arrays}
    inputs = {name: read.input(names[name]) for name in arrays}
    for node in read.get_ops():
        for output in node.outputs():
            # Where OpenVINO joins tensors, the joint one has the names of both, and may be called by the file's.
            output.get_tensor().set_names(set())
    for name, value in arrays.items():
        inputs[name].replace(value)
    got = {name: node.input_value(0) for name, node in ends.items()}
    y, after = from_file(_Ops(), network, got, chunk, batch)
    results = [_result(y, "y"), *(_result(value, NEXT + name) for name, value in after.items())]
    return data, ov.Model(results, [x, *states.values()], network.label)


def _read(data: bytes) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(data)
        return ov.Core().read_model(path)


def _parameter(shape: Sequence[int], name: str, dtype: str = "float32") -> Any:
    parameter = opset.parameter(list(shape), np.dtype(dtype))
    parameter.set_friendly_name(name)
    parameter.output(0).get_tensor().set_names({name})
    return parameter


def _result(value: Any, name: str) -> Any:
    # A value may be a parameter itself, or have several names.
    copied = opset.reshape(value, np.array(list(value.get_shape()), np.int64), False)
    result = opset.result(copied)
    result.set_friendly_name(name)
    result.output(0).get_tensor().set_names({name})
    return result


class _Ops:
    """`ArrayOps` over OpenVINO's operators."""

    def reshaped(self, value: Any, shape: Sequence[int]) -> Any:
        return opset.reshape(value, np.array(shape, np.int64), False).output(0)

    def transposed(self, value: Any, order: Sequence[int]) -> Any:
        return opset.transpose(value, np.array(order, np.int64)).output(0)

    def columns(self, value: Any, first: int, end: int) -> Any:
        ends = (np.array([first], np.int64), np.array([end], np.int64), np.array([1], np.int64))
        return opset.slice(value, *ends, np.array([2], np.int64)).output(0)

    def cast(self, value: Any, dtype: str) -> Any:
        return opset.convert(value, np.dtype(dtype)).output(0)

    def joined(self, values: Sequence[Any]) -> Any:
        return opset.concat(list(values), 2).output(0)
