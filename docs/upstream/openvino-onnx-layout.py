# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO ignores the attribute layout of ONNX's LSTM, GRU and RNN: it takes the rows of x for steps.

With layout = 1 rows come before steps, in x and in y. Here are two of each, so all shapes fit. The results must be
those of the ordinary operator, once the first two axes of its x and its y have changed places.
"""

import sys

import numpy as np
import onnx
import openvino as ov

GRAPH = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2, 2, 3] x, float[1, GATES, 3] w, float[1, GATES, 3] r) => (float[Y] y) {
  y = OPERATOR <hidden_size = 3, layout = LAYOUT> (x, w, r)
}
"""
SHAPES = ("2, 1, 2, 3", "2, 2, 1, 3")  # of y: steps, directions, rows, units; and rows, steps, directions, units


def results(operator, gates, layout, x):
    draw, graph = np.random.default_rng(0), GRAPH.replace("OPERATOR", operator).replace("LAYOUT", str(layout))
    model = onnx.parser.parse_model(graph.replace("GATES", str(3 * gates)).replace("Y]", f"{SHAPES[layout]}]"))
    weights = {name: draw.standard_normal((1, 3 * gates, 3)).astype(np.float32) for name in "wr"}
    compiled = ov.compile_model(ov.Core().read_model(model.SerializeToString()), "CPU")
    return compiled({"x": x, **weights})[0].reshape(2, 2, 3)


x = np.random.default_rng(1).standard_normal((2, 2, 3)).astype(np.float32)
differences = {}
for operator, gates in {"LSTM": 4, "GRU": 3, "RNN": 1}.items():
    expected = results(operator, gates, 0, x.swapaxes(0, 1)).swapaxes(0, 1)
    differences[operator] = float(np.abs(results(operator, gates, 1, x) - expected).max())
    found = f"found results that differ by {differences[operator]:.3f}"
    print(f"{operator}: expected the results of the ordinary operator, {found}")
sys.exit(int(max(differences.values()) > 1e-5))
