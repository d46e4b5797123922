# /// script
# dependencies = ["torch==2.13.0", "onnx==1.23.2", "onnxscript==0.7.2", "onnxruntime==1.31.1", "numpy"]
# ///
"""torch.onnx.export drops a state without a word: a buffer that a module writes becomes a constant of the model.

The module counts its calls. Its first three calls with 0 give 1 2 3, in torch and in torch.export's program.
"""

import sys

import numpy as np
import onnxruntime
import torch


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return x + self.calls


def export():
    """A new program each time: the calls of one would count in the next."""
    return torch.export.export(Counter(), (zero,))


zero = torch.zeros(1)
kept = export().module()
in_torch = [float(kept(zero)) for _ in range(3)]
model = torch.onnx.export(export()).model_proto
session = onnxruntime.InferenceSession(model.SerializeToString())
(x,) = model.graph.input
in_onnx = [float(session.run(None, {x.name: np.zeros(1, np.float32)})[0][0]) for _ in range(3)]
print("inputs:", [i.name for i in model.graph.input], "outputs:", [o.name for o in model.graph.output])
print(f"three calls: torch {in_torch}, the ONNX model {in_onnx}")
sys.exit(len(model.graph.output) == 1 and in_onnx != in_torch)
