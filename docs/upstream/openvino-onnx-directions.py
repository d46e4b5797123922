# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "onnxruntime==1.31.1", "numpy"]
# ///
"""OpenVINO gives both directions of ONNX's LSTM, GRU and RNN the activations of the first one.

The weights of both directions are 1, and x is 2. Forward it is a Relu, and backward a Tanh.
"""

import sys

import numpy as np
import onnx
import onnxruntime
import openvino

GATES = {"LSTM": (4, "Sigmoid, ACT, Tanh"), "GRU": (3, "Sigmoid, ACT"), "RNN": (1, "ACT")}


def answers(operator):
    """Of ONNX Runtime and OpenVINO: the last states of both directions."""
    gates, kinds = GATES[operator]
    names = [name for kind in ("Relu", "Tanh") for name in kinds.replace("ACT", kind).split(", ")]
    quoted = ", ".join(f'"{name}"' for name in names)
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[1, 1, 1] x, float[2, {gates}, 1] w) => (float[2, 1, 1] h) {{
          y, h = {operator} <hidden_size = 1, direction = "bidirectional", activations = [{quoted}]> (x, w, w)
        }}""")
    given = {"x": np.full((1, 1, 1), 2, np.float32), "w": np.ones((2, gates, 1), np.float32)}
    data = model.SerializeToString()
    (right,) = onnxruntime.InferenceSession(data).run(None, given)
    core = openvino.Core()
    found = core.compile_model(core.read_model(data), "CPU")(given)["h"]
    return right.ravel(), found.ravel()


wrong = []
for operator in GATES:
    right, found = answers(operator)
    print(f"{operator}: forward and backward {right.round(4)}, found {found.round(4)}")
    wrong.append(not np.allclose(right, found, atol=1e-3))
sys.exit(int(any(wrong)))
