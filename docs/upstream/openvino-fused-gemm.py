# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "onnxruntime==1.32.0", "numpy"]
# ///
"""OpenVINO takes each activation of ONNX Runtime's FusedGemm but LeakyRelu for a Relu.

x is -1 and 1, the weight is 1.
"""

import sys

import numpy as np
import onnx
import onnxruntime
import openvino

ACTIVATIONS = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "HardSigmoid", "Softplus", "Softsign")
GIVEN = {"x": np.array([[-1], [1]], np.float32)}


def answers(activation):
    """Of ONNX Runtime and OpenVINO."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[2, 1] x) => (float[2, 1] y) <float[1, 1] w = {{1}}> {{
          y = com.microsoft.FusedGemm
            <activation = "{activation}", activation_alpha = 0.5, activation_beta = 0.25> (x, w)
        }}""")
    data = model.SerializeToString()
    (right,) = onnxruntime.InferenceSession(data).run(None, GIVEN)
    core = openvino.Core()
    found = core.compile_model(core.read_model(data), "CPU")(GIVEN)["y"]
    return right.ravel(), found.ravel()


wrong = []
for activation in ACTIVATIONS:
    right, found = answers(activation)
    print(f"{activation} of -1 and 1: expected {right.round(4)}, found {found.round(4)}")
    wrong.append(not np.allclose(right, found, atol=1e-3))
sys.exit(int(any(wrong)))
