"""Modules of PyTorch that tests export as `.pt2` files."""

from __future__ import annotations

import torch


class Streaming(torch.nn.Module):
    """One step of a GRU whose state is in a buffer."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = torch.nn.GRUCell(3, 4), torch.nn.Linear(4, 2)
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x):
        self.h.copy_(self.cell(x, self.h))
        return self.out(self.h).tanh()
