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


class Ring(torch.nn.Module):
    """The last four inputs in a buffer, and in another one where the next one goes, and how many steps there were."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(4, 3))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("count", torch.zeros((), dtype=torch.int32))

    def forward(self, x):
        self.kept.index_copy_(0, self.position, x)
        self.position.copy_((self.position + 1) % 4)
        self.count += 1
        return self.kept[self.position] - x / self.count


class GivenRing(torch.nn.Module):
    """The same with its states as arguments."""

    def forward(self, x, kept, position):
        kept = kept.index_copy(0, position, x)
        position = (position + 1) % 4
        return kept[position] - x, kept, position


class Cell(torch.nn.Module):
    """One step of a cell of sigmoids whose state is in a buffer: IREE has no tanh of float64."""

    def __init__(self):
        super().__init__()
        self.w, self.u = torch.nn.Linear(3, 4), torch.nn.Linear(4, 4)
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x):
        self.h.copy_(torch.sigmoid(self.w(x) + self.u(self.h)))
        return self.h * 2


class Counting(torch.nn.Module):
    """A state without a product, and a count of steps, as arguments."""

    def forward(self, x, h, count):
        h, count = torch.sigmoid(x + h), count + 1
        return h * count, h, count
