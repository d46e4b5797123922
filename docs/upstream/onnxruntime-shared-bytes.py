# /// script
# dependencies = ["onnxruntime==1.31.1", "onnx==1.23.2", "numpy"]
# ///
"""ONNX Runtime does not load two quantised products by the same weights, with `session.x64quantprecision`.

The option makes weights in int8 unsigned. With one product it loads the file, and without the option it loads both.
"""

import sys

import numpy as np
import onnx
import onnxruntime

GRAPH = """
g (float[1, 1] x) => (float[1, 1] y) <int8[1, 1] w = {100}, float s = {0.01}, int8 z = {0}> {
  d = DequantizeLinear (w, s, z)
  xq = QuantizeLinear (x, s, z)
  xd = DequantizeLinear (xq, s, z)
  h = MatMul (xd, d)
  hq = QuantizeLinear (h, s, z)
  hd = DequantizeLinear (hq, s, z)
  SECOND
  yq = QuantizeLinear (m, s, z)
  y = DequantizeLinear (yq, s, z)
}
"""


def loads(second, precise):
    text = '<ir_version: 8, opset_import: ["": 17]> ' + GRAPH.replace("SECOND", f"m = {second}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", precise)
    try:
        session = onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options)
    except Exception as error:
        print(str(error).strip()[-120:])
        return False
    session.run(None, {"x": np.ones((1, 1), np.float32)})
    return True


assert loads("Tanh (hd)", "1")
assert loads("MatMul (hd, d)", "0")
found = loads("MatMul (hd, d)", "1")
print(f"two products, the same weights: expected that it loads, found {'that it does' if found else 'the error above'}")
sys.exit(int(not found))
