"""The primitives as torch's operators, each of which returns a new tensor: for programs that torch traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rnnbench.backends.torch.device import CPU
from rnnbench.rnn import WindowSizes, WithOperators

NARROW = (torch.float16, torch.bfloat16)


def constant(array: np.ndarray, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Contiguous, as products of float32 of most sizes want it.

    A matrix in float16 or bfloat16 lies on the processor as `nn.Linear` has it. Without instructions for these types,
    products with the other layout take 2 to 25 times as long.
    """
    tensor = torch.tensor(np.ascontiguousarray(array), dtype=dtype, device=device)
    if tensor.ndim == 2 and dtype in NARROW and device.type == CPU.type:
        return tensor.t().contiguous().t()
    return tensor


class Operators(WithOperators):
    """The primitives. The module of a layer owns the constants, so that they are its buffers and not its inputs."""

    def __init__(self, dtype: torch.dtype, device: torch.device = CPU) -> None:
        self.dtype = dtype
        self.device = device

    def constant(self, array: np.ndarray) -> Tensor:
        return constant(array, self.dtype, self.device)

    def matmul(self, x: Tensor, weight: Tensor) -> Tensor:
        return torch.mm(x, weight)

    def sigmoid(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    def tanh(self, x: Tensor) -> Tensor:
        return torch.tanh(x)

    def relu(self, x: Tensor) -> Tensor:
        return torch.relu(x)

    def clip(self, x: Tensor, bound: float) -> Tensor:
        return torch.clamp(x, -bound, bound)

    def split(self, x: Tensor, parts: int) -> list[Tensor]:
        return list(x.chunk(parts, dim=1))

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(parts), dim=1)

    def sqrt(self, x: Tensor) -> Tensor:
        return torch.sqrt(x)

    def mean(self, x: Tensor) -> Tensor:
        return x.mean(dim=1, keepdim=True).expand_as(x)

    def exp(self, x: Tensor) -> Tensor:
        return torch.exp(x)

    def log_sigmoid(self, x: Tensor) -> Tensor:
        return torch.nn.functional.logsigmoid(x)

    def cumsum(self, x: Tensor) -> Tensor:
        return torch.cumsum(x, dim=0)

    def stacked(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(parts))

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return x.reshape(shape)

    def einsum(self, equation: str, a: Tensor, b: Tensor) -> Tensor:
        return torch.einsum(equation, a, b)

    def windows(self, x: Tensor, sizes: WindowSizes) -> Tensor:
        return windows(x, sizes).reshape(-1, sizes.seen)

    def sum_of_parts(self, x: Tensor, parts: int) -> Tensor:
        return x.reshape(x.shape[0], parts, -1).sum(1)


def windows(x: Tensor, sizes: WindowSizes) -> Tensor:
    """A view of x [rows, places, taps, span, channels]. A product of it takes half of the time of `torch.conv2d`."""
    planes = x.view(x.shape[0], sizes.taps, sizes.frequencies, sizes.channels)
    return planes.unfold(2, sizes.span, 1).permute(0, 2, 1, 4, 3)
