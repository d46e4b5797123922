# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO computes something else for a batch once a compiled LSTM was exported and imported.

The model is compiled, called, exported, imported, and called again. Both calls have the same inputs.
"""

import io
import sys

import numpy as np
import onnx
import openvino

GRAPH = """
g (float[3, 2, 2] x, float[1, 8, 2] w, float[1, 8, 2] r) => (float[3, 1, 2, 2] y) {
  y = LSTM <hidden_size = 2> (x, w, r)
}
"""
model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + GRAPH)
drawn = np.random.default_rng(0)
inputs = {
    name: drawn.standard_normal(shape).astype(np.float32)
    for name, shape in {"x": (3, 2, 2), "w": (1, 8, 2), "r": (1, 8, 2)}.items()
}
weights = [onnx.numpy_helper.from_array(inputs.pop(name), name) for name in "wr"]
model.graph.initializer.extend(weights)
del model.graph.input[1:]

core = openvino.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
before = compiled(inputs)[0]
exported = io.BytesIO()
compiled.export_model(exported)
imported = core.import_model(exported.getvalue(), "CPU")
error = np.abs(imported(inputs)[0] - before).max()
print(f"largest difference between the compiled and the imported model: {error:.2g}")
sys.exit(int(error > 1e-4))
