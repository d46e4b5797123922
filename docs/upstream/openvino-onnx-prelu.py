# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO takes the slopes of an ONNX PRelu for those of axis 1 where they are as many as it is long.

ONNX broadcasts slopes as NumPy does: slopes of one axis are those of the last one.
"""

import sys

import numpy as np
import openvino
from onnx import TensorProto, helper, numpy_helper

SLOPES = np.array([0.1, 0.2, 0.3], np.float32)


def result(shape):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    nodes = [helper.make_node("PRelu", ["x", "slopes"], ["y"])]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], [numpy_helper.from_array(SLOPES, "slopes")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    program = openvino.compile_model(openvino.Core().read_model(model.SerializeToString()), "CPU")
    return np.array(program([np.full(shape, -1, np.float32)])[0])


wrong = 0
for shape in ((1, 2, 3), (1, 3, 3)):
    found, wanted = result(shape), np.broadcast_to(-SLOPES, shape)
    wrong += not np.allclose(found, wanted)
    print(f"x {list(shape)}: expected {wanted[0, 0].tolist()}, found {found[0, 0].tolist()}")
sys.exit(int(wrong > 0))
