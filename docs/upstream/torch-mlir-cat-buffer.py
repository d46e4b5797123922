# /// script
# dependencies = ["torch==2.13.0", "torch-mlir==20261001"]
# ///
"""torch-mlir refuses a program that puts an input beside a buffer which it writes.

The same program with the sum of the two in place of torch.cat is imported.
"""

import sys

import torch
from torch_mlir import fx


class Window(torch.nn.Module):
    """Gives its last two inputs."""

    def __init__(self, join):
        super().__init__()
        self.join = join
        self.register_buffer("last", torch.zeros(1, 2))

    def forward(self, x):
        y = self.join(x, self.last)
        self.last.copy_(x)
        return y


def imported(join):
    exported = torch.export.export(Window(join), (torch.ones(1, 2),))
    try:
        fx.export_and_import(exported, output_type="raw")
    except AssertionError as error:
        return f"AssertionError: {error}"
    return "imported"


added, beside = imported(torch.add), imported(lambda x, last: torch.cat([x, last], 1))
print("x + last:", added)
print("cat([x, last]):", beside)
sys.exit(added == "imported" and beside != "imported")
