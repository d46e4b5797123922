"""Where the tensors of a request are: on the device that it names, with copies for the host in its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rnnbench.backends.base import Request

CPU = torch.device("cpu")


def device_of(request: Request) -> torch.device:
    """The processor, or the first device of the requested kind, which is the one that the probe describes."""
    return CPU if request.device == CPU.type else torch.device(request.device, 0)


@dataclass(frozen=True)
class Transfers:
    """The arguments of `Tensor.to` for the two ways between the host's arrays and a program's tensors."""

    to_device: tuple[Any, ...]
    to_host: tuple[Any, ...]


def transfers(device: torch.device, computed: torch.dtype, exchanged: torch.dtype) -> Transfers:
    """Between tensors of dtype `exchanged` in the host and of dtype `computed` on the device.

    The way to a GPU is queued before its calls, and not waited for. The way back waits for all that is queued.
    """
    if device.type == "cpu":
        return Transfers((computed,), (exchanged,))
    return Transfers((device, computed, True), (CPU, exchanged))


def staging(device: torch.device, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A tensor of zeros in the host's memory, for what goes to the device. For a GPU it is pinned: its driver copies
    from there without a copy of its own, and while the host goes on."""
    return torch.zeros(shape, dtype=dtype, pin_memory=device.type != "cpu")
