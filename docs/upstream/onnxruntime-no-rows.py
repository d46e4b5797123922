# /// script
# dependencies = ["onnxruntime==1.31.1", "onnx==1.23.2", "numpy"]
# ///
"""ONNX Runtime ends the process where an LSTM or a GRU gets a batch of no rows.

An RNN gives an empty array. Each operator runs in a process of its own.
"""

import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

GRAPH = """
g (float[1, B, 1] x, float[1, GATES, 1] w, float[1, GATES, 1] r) => (float[1, 1, B, 1] y) {
  y = OPERATOR <hidden_size = 1> (x, w, r)
}
"""
OPERATORS = {"RNN": 1, "GRU": 3, "LSTM": 4}

if len(sys.argv) > 1:
    gates = OPERATORS[sys.argv[1]]
    graph = GRAPH.replace("OPERATOR", sys.argv[1]).replace("GATES", str(gates))
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + graph)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    weights = np.ones((1, gates, 1), np.float32)
    try:
        y = session.run(None, {"x": np.zeros((1, 0, 1), np.float32), "w": weights, "r": weights})[0]
        print("gives the shape", *y.shape)
    except Exception as error:
        print("raises", type(error).__name__)
    sys.exit()

ended = []
for operator in OPERATORS:
    run = subprocess.run([sys.executable, __file__, operator], capture_output=True, text=True, timeout=60)
    print(f"{operator} of 0 rows:", (run.stdout or f"{run.stderr.strip()}, exit status {run.returncode}").strip())
    ended.append(run.returncode < 0)
assert not ended[0]
sys.exit(int(any(ended)))
