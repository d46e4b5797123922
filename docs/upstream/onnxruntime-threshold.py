# /// script
# dependencies = ["onnxruntime==1.31.1", "onnx==1.23.2", "numpy"]
# ///
"""ONNX Runtime takes 0 for the threshold of a ThresholdedRelu in an RNN that gives none.

The default of the operator ThresholdedRelu is 1, so the RNN gives 0 at x = 0.5. Where the file says 1, it does.
"""

import sys

import numpy as np
import onnx
import onnxruntime

GRAPH = """
g (float[1, 1, 1] x, float[1, 1, 1] w, float[1, 1, 1] r) => (float[1, 1, 1, 1] y) {
  y = RNN <hidden_size = 1, activations = ["ThresholdedRelu"] ALPHA> (x, w, r)
}
"""


def answer(alpha):
    text = '<ir_version: 8, opset_import: ["": 17]> ' + GRAPH.replace("ALPHA", alpha)
    session = onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
    ones = np.ones((1, 1, 1), np.float32)
    return session.run(None, {"x": ones / 2, "w": ones, "r": ones})[0].item()


threshold = onnx.defs.get_schema("ThresholdedRelu", 22).attributes["alpha"].default_value.f
given, left_out = answer(f", activation_alpha = [{threshold}]"), answer("")
print(f"ThresholdedRelu of 0.5, threshold {threshold:g}: given, it is {given:g}; left out, it is {left_out:g}")
sys.exit(int(left_out != given))
