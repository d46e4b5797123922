# /// script
# dependencies = ["torch==2.13.0", "numpy"]
# [tool.rnnbench]
# tools = "g++: apt-get install g++"
# ///
"""AOTInductor computes a buffer of one element once, when it compiles, although the program writes it.

The module counts its calls in a buffer. The same module with two elements is right. Needs g++.
"""

import sys
import tempfile
from pathlib import Path

import torch


class Counter(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("calls", torch.zeros(size))

    def forward(self, x):
        y = x + self.calls
        self.calls.add_(1)
        return y


def count(size):
    """The results of four calls of a package whose buffer has so many elements: the first number of each."""
    x = torch.zeros(1)
    with tempfile.TemporaryDirectory() as folder:
        package = str(Path(folder, "counter.pt2"))
        torch._inductor.aoti_compile_and_package(torch.export.export(Counter(size), (x,)), package_path=package)
        step = torch._inductor.aoti_load_package(package)
        return [int(step(x)[0]) for _ in range(4)]


one, two = count(1), count(2)
print(f"four calls of a counter: expected [0, 1, 2, 3]; found {one} with one element, {two} with two")
sys.exit(int(one != [0, 1, 2, 3]))
