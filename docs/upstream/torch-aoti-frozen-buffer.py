# /// script
# dependencies = ["torch==2.13.0", "numpy"]
# [tool.rnnbench]
# tools = "g++: apt-get install g++"
# ///
"""AOTInductor with freezing takes a buffer that the program writes for a constant.

Every call then starts from the state that the buffer had when the program was compiled. Needs g++.
"""

import sys
import tempfile
from pathlib import Path

import torch


class Last(torch.nn.Module):
    """y is x and twice the x of the call before."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x):
        y = x + 2 * self.last
        self.last.copy_(x)
        return y


def outputs(freezing):
    """The results of three calls: the first number of each."""
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        package = str(Path(folder, "last.pt2"))
        exported = torch.export.export(Last(), (torch.ones(2),))
        configs = {"freezing": freezing}
        torch._inductor.aoti_compile_and_package(exported, package_path=package, inductor_configs=configs)
        step = torch._inductor.aoti_load_package(package)
        return [int(step(torch.full((2,), value))[0]) for value in (1.0, 10.0, 100.0)]


plain, frozen = outputs(False), outputs(True)
print(f"three calls: expected [1, 12, 120]; found {plain} without freezing, {frozen} with it")
sys.exit(int(frozen != [1, 12, 120]))
