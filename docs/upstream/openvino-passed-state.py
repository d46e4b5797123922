# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO computes a loop wrongly whose state is only passed on.

Each pass gives back its old state and keeps its input. So y is x, one step later: 0 1 2.
"""

import sys

import numpy as np
import onnx
import openvino

GRAPH = """
g (float[1, 1] s, float[3, 1, 1] xs) => (float[1, 1] last, float[3, 1, 1] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[1, 1] h, float[1, 1] x) => (float[1, 1] n, float[1, 1] o) {
    n = Identity(x)
    o = Identity(h)
  }> (s, xs)
}
"""
model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + GRAPH)
core = openvino.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
x = np.float32([1, 2, 3]).reshape(3, 1, 1)
last, y = (result.ravel() for result in compiled({"s": np.zeros((1, 1), np.float32), "xs": x}).values())
print("y: expected 0 1 2, found", y, " state: expected 3, found", last)
sys.exit(not (np.array_equal(y, [0, 1, 2]) and np.array_equal(last, [3])))
