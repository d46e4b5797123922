# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO gives a quantised Concat wrongly as an output where a quantised convolution reads it too.

y is a Concat of two inputs, quantised and dequantised. With y alone it is right, with a Conv of y beside it is wrong.
"""

import sys

import numpy as np
import openvino
from onnx import TensorProto, checker, helper, numpy_helper

SCALE = np.float32(0.02)
X = np.random.default_rng(0).normal(size=(1, 6, 3)).astype(np.float32)


def y_of(zero, with_convolution):
    nodes = [
        helper.make_node("Concat", ["c", "x"], ["k"], axis=2),
        helper.make_node("QuantizeLinear", ["k", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        helper.make_node("DequantizeLinear", ["bytes", "scale", "none"], ["weights"]),
        helper.make_node("Conv", ["y", "weights"], ["v"]),
    ]
    shapes = {"c": [1, 6, 2], "x": [1, 6, 1], "y": [1, 6, 3], "v": [1, 6, 1]}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    constants = {"scale": SCALE, "zero": np.int8(zero), "none": np.int8(0), "bytes": np.ones((6, 6, 3), np.int8)}
    initializers = [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    if with_convolution:
        graph = helper.make_graph(nodes, "graph", ends[:2], ends[2:], initializers)
    else:
        graph = helper.make_graph(nodes[:3], "graph", ends[:2], ends[2:3], initializers[:2])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    program = openvino.compile_model(openvino.Core().read_model(model.SerializeToString()), "CPU")
    return np.array(program({"c": X[..., :2], "x": X[..., 2:]})[0])


wrong = False
for zero, beside in ((-2, False), (0, True), (-2, True)):
    wanted = (np.clip(np.rint(X / SCALE) + zero, -128, 127) - zero) * SCALE
    error = np.abs(y_of(zero, beside) - wanted).max()
    wrong |= bool(error > SCALE / 2)
    print(f"zero point {zero}, {'a Conv beside' if beside else 'y alone'}: largest error {error:.3g}, a step is 0.02")
sys.exit(int(wrong))
