# /// script
# dependencies = ["onnx==1.23.2", "onnxruntime==1.31.1", "numpy"]
# ///
"""ONNX's version converter keeps the attributes of operators that mean something else in the later version.

Before version 13 a Hardmax takes an axis and all that follow for one. Before version 11 a Resize and an Upsample have
the places that are called `asymmetric` later, and the later default is `half_pixel`. Each node is computed by ONNX
Runtime, as it is and after the conversion to version 17.
"""

import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter

X = np.random.default_rng(0).standard_normal((1, 1, 4, 6)).astype(np.float32)
SCALES = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")


def results(operator, version, weights=(), **attributes):
    nodes = [helper.make_node(operator, ["x", *(weight.name for weight in weights)], ["y"], **attributes)]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", X.shape), ("y", "abcd"))
    )
    graph = helper.make_graph(nodes, "graph", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
    for made in (model, version_converter.convert_version(model, 17)):
        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        yield session.run(None, {"x": X})[0]


wrong = 0
for operator, version, weights, attributes in (
    ("Softmax", 12, (), {"axis": 2}),
    ("Hardmax", 12, (), {"axis": 2}),
    ("Resize", 10, (SCALES,), {"mode": "linear"}),
    ("Upsample", 9, (SCALES,), {"mode": "linear"}),
):
    before, after = results(operator, version, weights, **attributes)
    difference = float(np.abs(before - after).max())
    wrong += difference > 1e-5
    print(f"{operator} of version {version}: largest difference after the conversion {difference:.4f}")
sys.exit(int(wrong > 0))
