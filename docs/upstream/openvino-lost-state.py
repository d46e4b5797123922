# /// script
# dependencies = ["openvino==2026.4.1", "torch==2.13.0", "numpy"]
# ///
"""openvino.convert_model drops the state of a program of torch.export without a word.

The module counts its calls. Its first three calls with 0 give 1 2 3, in torch and in torch.export's program.
"""

import sys

import numpy as np
import openvino
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
model = openvino.convert_model(export())
request = openvino.Core().compile_model(model, "CPU").create_infer_request()
found = [float(request.infer([np.zeros(1, np.float32)])[0].item()) for _ in range(3)]
print("variables of the model:", request.query_state(), "outputs:", len(model.outputs))
print(f"three calls: torch {in_torch}, OpenVINO {found}")
sys.exit(len(model.outputs) == 1 and found != in_torch)
