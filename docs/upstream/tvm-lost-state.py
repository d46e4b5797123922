# /// script
# dependencies = ["apache-tvm==0.27.0.post1", "torch==2.13.0", "numpy"]
# ///
"""TVM's from_exported_program drops the state of a program of torch.export without a word.

The module counts its calls. Its first three calls with 0 give 1 2 3, in torch and in torch.export's program.
"""

import sys

import numpy as np
import torch
import tvm
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program


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
machine = relax.VirtualMachine(tvm.compile(from_exported_program(export()), "llvm"), tvm.cpu())
results = [machine["main"](tvm.runtime.tensor(np.zeros(1, np.float32))) for _ in range(3)]
found = [[float(each.numpy()[0]) for each in result] for result in results]
print(f"three calls: torch {in_torch}, TVM {found}")
sys.exit(len(found[0]) == 1 and [value for (value,) in found] != in_torch)
