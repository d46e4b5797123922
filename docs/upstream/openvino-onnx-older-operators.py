# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO reads ONNX's Softmax of version 11 as that of 13, and the axes of a reduction of version 13 as none.

Before version 13, a Softmax takes an axis and all that follow for one. ReduceL1, ReduceLogSum and ReduceLogSumExp have
their axes as an attribute until version 18. Each node is compared with NumPy.
"""

import sys

import numpy as np
import openvino
from onnx import TensorProto, helper

X = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)


def result(operator, version, shape, **attributes):
    ends = [helper.make_tensor_value_info(*end) for end in (("x", TensorProto.FLOAT, X.shape), ("y", 1, shape))]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **attributes)], "graph", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=7)
    program = openvino.Core().compile_model(openvino.Core().read_model(model.SerializeToString()), "CPU")
    return np.array(program([X])[0])


def softmax(rows):
    powers = np.exp(rows - rows.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).reshape(X.shape)


expected = {
    ("Softmax", 11): softmax(X.reshape(2, 15)),
    ("ReduceL1", 13): np.abs(X).sum(1),
    ("ReduceLogSumExp", 13): np.log(np.exp(X).sum(1)),
}
wrong = 0
for (operator, version), wanted in expected.items():
    more = {"axis": 1} if operator == "Softmax" else {"axes": [1], "keepdims": 0}
    found = result(operator, version, wanted.shape, **more)
    is_right = found.shape == wanted.shape and np.allclose(found, wanted, atol=1e-4)
    wrong += not is_right
    first = np.ravel(found)[0]
    print(
        f"{operator} of version {version}: expected {np.ravel(wanted)[0]:.4f} … of shape {wanted.shape}, "
        f"found {first:.4f} … of shape {found.shape}"
    )
sys.exit(int(wrong > 0))
