# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO ignores the peepholes and the joint gates of an ONNX LSTM.

Its gates are i = 0.5, f = 1 and o = 1, the new value is 1, and c is 1 before: h is tanh 1.5 = 0.905. A peephole from c
opens i: h is tanh 2 = 0.964. With input_forget i and f add to 1, whichever is taken from the other: h is tanh 1.
"""

import sys

import numpy as np
import onnx
import openvino as ov

GRAPH = """
g (float[1, 1, 1] x, float[1, 4, 1] w, float[1, 4, 1] r, float[1, 8] b, float[1, 1, 1] h, float[1, 1, 1] c,
   float[1, 3] p) => (float[1, 1, 1, 1] y) {
  y = LSTM <hidden_size = 1, input_forget = FORGET> (x, w, r, b, , h, c, p)
}
"""
ORDINARY = {
    "x": [[[1]]],
    "w": [[[0], [100], [100], [100]]],
    "r": [[[0]] * 4],
    "b": [[0] * 8],
    "h": [[[0]]],
    "c": [[[1]]],
    "p": [[0, 0, 0]],
}  # gates in the order i o f c
FORMS = {
    "an ordinary LSTM": (0, ORDINARY, 0.905),
    "with a peephole": (0, ORDINARY | {"p": [[100, 0, 0]]}, 0.964),
    "with input_forget": (1, ORDINARY, 0.762),
}

wrong = {}
for name, (forget, inputs, expected) in FORMS.items():
    graph = GRAPH.replace("FORGET", str(forget))
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + graph)
    compiled = ov.compile_model(ov.Core().read_model(model.SerializeToString()), "CPU")
    names = {each for port in compiled.inputs for each in port.names}
    y = compiled({each: np.float32(value) for each, value in inputs.items() if each in names})[0].item()
    print(f"{name}: expected {expected}, found {y:.3f}")
    wrong[name] = abs(y - expected) > 1e-3
assert not wrong.pop("an ordinary LSTM")
sys.exit(int(any(wrong.values())))
