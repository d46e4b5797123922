"""Route eager, library: nn.LSTM, nn.GRU and nn.RNN for public calls, and their operators for bound calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn

from rnnbench.backends.base import Request
from rnnbench.backends.torch.counting import WHOLE_KERNELS
from rnnbench.backends.torch.device import CPU, device_of
from rnnbench.backends.torch.library import uses_onednn
from rnnbench.backends.torch.stream import PreparedStream
from rnnbench.rnn import Model

WITHOUT_ONEDNN = Lock()
"""A call without oneDNN takes this lock: the switch is one for the process, and another thread would turn it on."""
WITH_ONEDNN: set[ReferenceType[Lock]] = set()
"""The lock of each stream whose calls need the switch on. A call without oneDNN takes all of them, too: otherwise a
call that another thread begins meanwhile would be computed without oneDNN, and have other last digits. A stream takes
its own alone, so their calls run beside each other."""


def _taken_locks() -> list[Lock]:
    locks = [lock for reference in WITH_ONEDNN.copy() if (lock := reference()) is not None]
    for lock in locks:
        lock.acquire()
    return locks


class FusedStream(PreparedStream):
    """nn's module with its state: zeros in every call, the tensors of the last call, or buffers written in place.

    A prepared call uses the operator: the checks in nn's module cost 14 µs, two thirds of an LSTM step of 128 units.
    """

    def __init__(self, request: Request, module: nn.RNNBase, dtype: torch.dtype) -> None:
        model = request.stack
        shapes = model.state_shapes(request.batch)
        self._names = list(shapes)
        device = device_of(request)
        self._tensors = tuple(torch.zeros(shape, dtype=dtype, device=device) for shape in shapes.values())
        self._module = module
        self._store = {"none": _discard, "stitched": self._replace, "stateful": self._overwrite}[request.strategy.state]
        self._flips = model.direction == "reverse"
        self._as_it_is = device != CPU or uses_onednn(request)
        """Whether calls are made with the switch of oneDNN as it is: on, and without a meaning for a GPU."""
        self._stays_on = Lock()
        if self._as_it_is:
            with WITHOUT_ONEDNN:
                WITH_ONEDNN.add(ref(self._stays_on, WITH_ONEDNN.discard))
        self._operator = operator_of(model)
        self._settings = (*settings_of(model, module), False)

    @property
    def state(self) -> dict[str, Tensor]:
        return dict(zip(self._names, self._tensors, strict=True))

    def write(self, state: Mapping[str, Tensor]) -> None:
        self._store([state[name] for name in self._names])

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self._run(self._call_module, x)

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self._run, self._call_operator, x)

    def _run(self, call: Callable[[Tensor], tuple[Tensor, ...]], x: Tensor) -> Tensor:
        if self._flips:
            x = x.flip(0)
        if self._as_it_is:
            with self._stays_on:
                y, *state = call(x)
        else:
            with WITHOUT_ONEDNN:
                # This is timed, and most programs without oneDNN have no stream with it beside them.
                held = _taken_locks() if WITH_ONEDNN else ()
                torch._C._set_mkldnn_enabled(False)
                try:
                    y, *state = call(x)
                finally:
                    torch._C._set_mkldnn_enabled(True)
                    for lock in held:
                        lock.release()
        self._store(state)
        return y.flip(0) if self._flips else y

    def _call_module(self, x: Tensor) -> tuple[Tensor, ...]:
        y, state = self._module(x, self._initial())
        return (y, *state) if isinstance(state, tuple) else (y, state)

    def _call_operator(self, x: Tensor) -> tuple[Tensor, ...]:
        return self._operator(x, self._initial(), *self._settings)

    def _initial(self) -> Tensor | tuple[Tensor, ...]:
        return self._tensors if len(self._tensors) > 1 else self._tensors[0]

    def _replace(self, state: list[Tensor]) -> None:
        self._tensors = tuple(state)

    def _overwrite(self, state: list[Tensor]) -> None:
        for buffer, new in zip(self._tensors, state, strict=True):
            buffer.copy_(new)


def _discard(state: list[Tensor]) -> None:
    """Every call starts from zeros."""


def operator_of(model: Model) -> Callable[..., tuple[Tensor, ...]]:
    """The operator that nn's module of this model calls."""
    name = f"rnn_{model.activation}" if model.cell == "rnn" else model.cell
    operator: Callable[..., tuple[Tensor, ...]] = getattr(torch, name)
    return operator


def settings_of(model: Model, module: nn.RNNBase) -> tuple[Any, ...]:
    """The operator's arguments after the state: weights, bias, layers, dropout, training, bidirectional."""
    return list(module.parameters()), model.bias, model.layers, 0.0, False, model.direction == "bidirectional"


def lowered(model: Model, kernels: Mapping[str, int]) -> str:
    """An operator without a kernel for all steps is a loop in C++ over the kernels of one step."""
    if kernels.keys() & WHOLE_KERNELS:
        return "fused"
    return f"looped {model.layers * model.directions}"
