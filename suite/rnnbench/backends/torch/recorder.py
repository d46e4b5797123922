"""The primitives as torch calls. Each call is recorded once, with its output tensor, and then repeated.

After the recording, no call allocates and no slice is taken. An LSTM step of 128 units takes 13 µs in this way, and
20 µs with `torch.lstm_cell`. A product and the sum after it are one call: `addmm` or `addcmul`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnbench.backends.torch.device import CPU
from rnnbench.backends.torch.operators import constant, windows
from rnnbench.rnn import WindowSizes, aligned, contraction, permutation


@dataclass(frozen=True)
class RecordedCall:
    """One call: a function of torch that takes `out`, its operands and its output."""

    function: Callable[..., Tensor]
    operands: tuple[Any, ...]
    """Tensors, numbers, or a tuple of tensors."""
    out: Tensor

    def call(self) -> Callable[[], object]:
        return partial(self.function, *self.operands, out=self.out)

    @property
    def name(self) -> str:
        return self.function.__name__.lstrip("_")

    def __str__(self) -> str:
        return f"{self.name} {[_described(operand) for operand in self.operands]} {tuple(self.out.shape)}"

    def reads(self) -> Iterator[Tensor]:
        """The tensors among its operands."""
        for operand in self.operands:
            yield from (o for o in (operand if isinstance(operand, tuple) else (operand,)) if isinstance(o, Tensor))


class Recorder:
    """The primitives over tensors of one dtype on one device. Values are the tensors that recorded calls write.

    `constants` are those of an earlier recorder over the same bodies, in the order in which the bodies asked for
    them. They are used instead of new tensors.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device = CPU, constants: Sequence[Tensor] = ()) -> None:
        self.constants: list[Tensor] = []
        self._given_constants = iter(constants)
        self._dtype = dtype
        self._device = device
        self._calls: list[RecordedCall] = []

    def take(self) -> list[RecordedCall]:
        """The calls recorded since the last time."""
        calls, self._calls = self._calls, []
        return calls

    def constant(self, array: np.ndarray) -> Tensor:
        value = next(self._given_constants, None)
        if value is None:
            value = constant(array, self._dtype, self._device)
        self.constants.append(value)
        return value

    def matmul(self, x: Tensor, weight: Tensor) -> Tensor:
        return self._record(torch.mm, (x, weight), (x.shape[0], weight.shape[1]))

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """The sum; one call together with the product before it, where that product is one of the two operands.

        A body reads each product only once, so the product alone is not needed.
        """
        for product, fused in ((torch.mm, torch.addmm), (torch.mul, torch.addcmul)):
            for factor, summand in ((a, b), (b, a)):
                last = self._calls[-1] if self._calls else None
                if last is not None and last.function is product and last.out is factor:
                    self._calls.pop()
                    return self._record(fused, (summand, *last.operands), factor.shape)
        return self._record(torch.add, (a, b), a.shape)

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        return self._record(torch.sub, (a, b), a.shape)

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        return self._record(torch.mul, (a, b), a.shape)

    def sigmoid(self, x: Tensor) -> Tensor:
        return self._record(torch.sigmoid, (x,), x.shape)

    def tanh(self, x: Tensor) -> Tensor:
        return self._record(torch.tanh, (x,), x.shape)

    def relu(self, x: Tensor) -> Tensor:
        """`torch.relu` takes no `out`."""
        return self._record(torch.clamp_min, (x, 0.0), x.shape)

    def clip(self, x: Tensor, bound: float) -> Tensor:
        return self._record(torch.clamp, (x, -bound, bound), x.shape)

    def split(self, x: Tensor, parts: int) -> list[Tensor]:
        return list(x.chunk(parts, dim=1))

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return self._joined(parts, 1)

    def columns(self, x: Tensor, start: int, stop: int) -> Tensor:
        return x[:, start:stop]

    def div(self, a: Tensor, b: Tensor) -> Tensor:
        return self._record(torch.div, (a, b), a.shape)

    def sqrt(self, x: Tensor) -> Tensor:
        return self._record(torch.sqrt, (x,), x.shape)

    def mean(self, x: Tensor) -> Tensor:
        """A view of one column."""
        return self._record(torch.mean, (x, 1, True), (x.shape[0], 1)).expand(*x.shape)

    def exp(self, x: Tensor) -> Tensor:
        return self._record(torch.exp, (x,), x.shape)

    def log_sigmoid(self, x: Tensor) -> Tensor:
        """The function behind `torch.nn.functional.logsigmoid`, which takes no `out`."""
        return self._record(torch._C._nn.log_sigmoid, (x,), x.shape)

    def cumsum(self, x: Tensor) -> Tensor:
        return self._record(torch.cumsum, (x, 0), x.shape)

    def rows(self, x: Tensor, start: int, stop: int) -> Tensor:
        return x[start:stop]

    def stacked(self, parts: Sequence[Tensor]) -> Tensor:
        return self._joined(parts, 0)

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        """A view where there is one, and else a copy."""
        result = x.reshape(shape)
        if result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            return result
        return self._record(_copy, (x,), x.shape).view(shape)

    def einsum(self, equation: str, a: Tensor, b: Tensor) -> Tensor:
        """Products of matrices, or products of elements and their sum: `torch.einsum` takes no `out`."""
        parts = contraction(equation)
        if parts.is_product:
            left, right, both = parts.product_letters
            first, second = a.permute(permutation(parts.a, left)), b.permute(permutation(parts.b, right))
            product = self._record(torch.matmul, (first, second), (*first.shape[:-1], second.shape[-1]))
            return product.permute(permutation(both, parts.out))
        if parts.row_axes:
            row = _with_axes(a, parts.row_axes)
            return self._record(torch.matmul, (row, b), (*b.shape[:-2], 1, b.shape[-1])).squeeze(-2)
        first, second = _aligned(a, parts.a, parts.every), _aligned(b, parts.b, parts.every)
        sizes = dict(zip(parts.a + parts.b, (*a.shape, *b.shape), strict=True))
        shape = [sizes[letter] for letter in parts.every]
        product = self._record(torch.mul, (first, second), shape)
        if not parts.summed:
            return product
        kept = len(parts.out)
        return self._record(torch.sum, (product, tuple(range(kept, len(shape)))), shape[:kept])

    def windows(self, x: Tensor, sizes: WindowSizes) -> Tensor:
        return self.reshape(windows(x, sizes), -1, sizes.seen)

    def sum_of_parts(self, x: Tensor, parts: int) -> Tensor:
        by_part = x.view(x.shape[0], parts, -1)
        return self._record(torch.sum, (by_part, (1,)), (x.shape[0], by_part.shape[2]))

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """[steps, batch, size] each, side by side."""
        return self._joined(parts, 2)

    def _joined(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self._record(torch.cat, (tuple(parts), axis), shape)

    def _record(self, function: Callable[..., Tensor], operands: tuple[Any, ...], shape: Sequence[int]) -> Tensor:
        out = torch.zeros(*shape, dtype=self._dtype, device=self._device)
        self._calls.append(RecordedCall(function, operands, out))
        return out


def _aligned(x: Tensor, letters: str, every: str) -> Tensor:
    """A view of x with an axis for each letter of `every`."""
    order, new = aligned(letters, every)
    return _with_axes(x.permute(order), new)


def _with_axes(x: Tensor, axes: Sequence[int]) -> Tensor:
    for axis in axes:
        x = x.unsqueeze(axis)
    return x


def in_place(
    calls: Sequence[RecordedCall], old_state: Sequence[Tensor], new_state: Sequence[Tensor], y: Tensor
) -> tuple[list[RecordedCall], Tensor]:
    """The calls, changed so that the new state is in the tensors of the old one, and the tensor that then has y.

    Each new state is written over the old one where no later call reads the old one. Elsewhere, a copy of the new state
    over the old one is added at the end.
    """
    calls, copies = list(calls), []
    values = [y, *new_state]
    for place, value in enumerate(values):
        if any(overlap(value, old) for old in old_state):
            # A part of the old state, which is overwritten.
            calls.append(RecordedCall(_copy, (value,), torch.empty_like(value)))
            values[place] = calls[-1].out
    for place, old in enumerate(old_state, start=1):
        new = values[place]
        # The same new state may be that of a place before this one, where it is read from now on.
        is_stored = any(new is earlier for earlier in old_state[: place - 1])
        if not is_stored and _may_overwrite(calls, old, new, values):
            calls = [_with_tensor_replaced(call, new, old) for call in calls]
        else:
            copies.append(RecordedCall(_copy, (new,), old))
        # Where y is a part of the state it is read there, since the state of a row that has ended is zero.
        values = [old if value is new else value for value in values]
    return calls + copies, values[0]


def _may_overwrite(calls: Sequence[RecordedCall], old: Tensor, new: Tensor, values: Sequence[Tensor]) -> bool:
    """Whether `new` may be written to `old` at once: no later call reads `old`, and nothing reads a part of `new`."""
    index = next((i for i, call in enumerate(calls) if call.out is new), None)
    if index is None:
        return False
    elementwise = calls[index].function not in (torch.mm, torch.addmm, torch.cat)
    for i, call in enumerate(calls):
        for operand in call.reads():
            if overlap(operand, old) and not (i < index or (i == index and elementwise and operand is old)):
                return False
            if overlap(operand, new) and operand is not new:
                return False
    return not any(overlap(value, new) and value is not new for value in values)


def overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors may share elements: the ranges of their elements in one storage intersect."""
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    (a_start, a_end), (b_start, b_end) = _elements(a), _elements(b)
    return a_start < b_end and b_start < a_end


def _elements(tensor: Tensor) -> tuple[int, int]:
    """Where in its storage a tensor starts and ends."""
    start = int(tensor.storage_offset())
    return start, start + 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _with_tensor_replaced(call: RecordedCall, tensor: Tensor, replacement: Tensor) -> RecordedCall:
    def replaced(operand: Any) -> Any:
        if isinstance(operand, tuple):
            return tuple(map(replaced, operand))
        return replacement if operand is tensor else operand

    return RecordedCall(call.function, replaced(call.operands), replaced(call.out))


def _described(operand: Any) -> Any:
    if isinstance(operand, tuple):
        return [_described(part) for part in operand]
    return tuple(operand.shape) if isinstance(operand, Tensor) else operand


def _copy(source: Tensor, *, out: Tensor) -> Tensor:
    return out.copy_(source)
