"""Route eager, library, rows of several lengths: nn's RNNs over packed sequences, from zeros in every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from rnnbench.backends.base import Request
from rnnbench.backends.torch.fused import operator_of, settings_of
from rnnbench.backends.torch.stream import PreparedStream

Turned = tuple[Tensor, Tensor]
"""Indices [chunk, batch] by which each row is turned about its own end; what is beyond it stays where it is."""


class PackedStream(PreparedStream):
    """A chunk is packed, run and unpacked, as users do. A prepared call finds its chunk packed.

    nn has no RNN that only runs backwards: then each row is turned about its own end before, and y after.
    """

    def __init__(self, request: Request, module: nn.RNNBase, dtype: torch.dtype) -> None:
        model = request.model
        zeros = [torch.zeros(shape, dtype=dtype) for shape in model.state_shapes(request.batch).values()]
        self.state: dict[str, Tensor] = {}
        self._initial: Any = tuple(zeros) if len(zeros) > 1 else zeros[0]
        self._module = module
        self._steps = request.strategy.chunk
        self._turns = model.direction == "reverse"
        self._operator = operator_of(model)
        self._settings = settings_of(model, module)

    def write(self, state: Mapping[str, Tensor]) -> None:
        """There is none to take."""

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        packed, turned = self._packed(x, lengths)
        y, _ = self._module(packed)
        return self._padded(y, turned)

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self._run, *self._packed(x, lengths))

    def _run(self, packed: PackedSequence, turned: Turned | None) -> Tensor:
        y, *_ = self._operator(packed.data, packed.batch_sizes, self._initial, *self._settings)
        return self._padded(PackedSequence(y, *packed[1:]), turned)

    def _packed(self, x: Tensor, lengths: Tensor | None) -> tuple[PackedSequence, Turned | None]:
        assert lengths is not None, "rows have lengths of their own here"
        turned = _turned(self._steps, lengths) if self._turns else None
        rows = x if turned is None else x[turned]
        return pack_padded_sequence(rows, lengths, enforce_sorted=False), turned

    def _padded(self, packed: PackedSequence, turned: Turned | None) -> Tensor:
        y, _ = pad_packed_sequence(packed, total_length=self._steps)
        return y if turned is None else y[turned]


def _turned(steps: int, lengths: Tensor) -> Turned:
    step = torch.arange(steps)[:, None]
    return torch.where(step < lengths, lengths - 1 - step, step), torch.arange(len(lengths))
