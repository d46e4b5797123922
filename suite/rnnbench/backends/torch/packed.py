"""Route eager, library, rows of different lengths: nn's RNNs over packed sequences, from zeros in every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from rnnbench.backends.base import Request
from rnnbench.backends.torch.device import device_of
from rnnbench.backends.torch.fused import operator_of, settings_of
from rnnbench.backends.torch.stream import PreparedStream

Reversal = tuple[Tensor, Tensor]
"""Indices [chunk, batch] that reverse the steps of each row within its length. Padding stays in its place."""


class PackedStream(PreparedStream):
    """A public call packs the chunk, runs it and unpacks y, as users do. A prepared call has its chunk packed.

    nn has no RNN that only runs backwards. For such a model, each row is reversed before the call, and y after it.
    """

    def __init__(self, request: Request, module: nn.RNNBase, dtype: torch.dtype) -> None:
        model = request.stack
        self._device = device_of(request)
        shapes = model.state_shapes(request.batch).values()
        zeros = [torch.zeros(shape, dtype=dtype, device=self._device) for shape in shapes]
        self.state: dict[str, Tensor] = {}
        self._initial: Any = tuple(zeros) if len(zeros) > 1 else zeros[0]
        self._module = module
        self._steps = request.strategy.chunk
        self._reverses = model.direction == "reverse"
        self._operator = operator_of(model)
        self._settings = settings_of(model, module)

    def write(self, state: Mapping[str, Tensor]) -> None:
        """Every call starts from zeros: there is no state."""

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        packed, reversal = self._packed(x, lengths)
        y, _ = self._module(packed)
        return self._padded(y, reversal)

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self._run, *self._packed(x, lengths))

    def _run(self, packed: PackedSequence, reversal: Reversal | None) -> Tensor:
        y, *_ = self._operator(packed.data, packed.batch_sizes, self._initial, *self._settings)
        return self._padded(PackedSequence(y, *packed[1:]), reversal)

    def _packed(self, x: Tensor, lengths: Tensor | None) -> tuple[PackedSequence, Reversal | None]:
        assert lengths is not None, "a packed stream needs the lengths of its rows"
        reversal = _reversal(self._steps, lengths, self._device) if self._reverses else None
        rows = x if reversal is None else x[reversal]
        return pack_padded_sequence(rows, lengths, enforce_sorted=False), reversal

    def _padded(self, packed: PackedSequence, reversal: Reversal | None) -> Tensor:
        y, _ = pad_packed_sequence(packed, total_length=self._steps)
        return y if reversal is None else y[reversal]


def _reversal(steps: int, lengths: Tensor, device: torch.device) -> Reversal:
    step = torch.arange(steps)[:, None]
    source = torch.where(step < lengths, lengths - 1 - step, step)
    return source.to(device), torch.arange(len(lengths), device=device)
