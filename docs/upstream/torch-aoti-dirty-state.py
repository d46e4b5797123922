# /// script
# dependencies = ["torch==2.13.0", "numpy"]
# [tool.rnnbench]
# tools = "g++: apt-get install g++"
# ///
"""AOTInductor starts a program from what its buffers held when it was packaged, and not from what was exported.

The module counts its calls. Its program is exported at 0, and `program.module()` is then called three times, as a user
does to compare it with the module. Needs g++.
"""

import sys
import tempfile
from pathlib import Path

import torch


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


x = torch.zeros(1)
program = torch.export.export(Counter(), (x,))
checked = program.module()
for _ in range(3):
    checked(x)
with tempfile.TemporaryDirectory() as folder:
    package = str(Path(folder, "counter.pt2"))
    torch._inductor.aoti_compile_and_package(program, package_path=package)
    y = [torch._inductor.aoti_load_package(package)(x).item() for _ in range(2)]
print(f"the first call of two loaded packages: expected 1 and 1, found {y[0]:.0f} and {y[1]:.0f}")
sys.exit(int(y != [1, 1]))
