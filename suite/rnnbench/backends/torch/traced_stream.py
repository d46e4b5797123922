"""A stream through a program that torch traced: the state is passed in and out, is in its buffers, or is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from rnnbench.backends.torch.split_states import may_split, of_their_own
from rnnbench.backends.torch.stream import PreparedStream


class TracedStream(PreparedStream):
    """`step` calls `public`, and prepared calls call `fast`. With `stitched` both take (x, h, c) and return (y, h, c).
    Otherwise they take x and return y.

    `state` has the tensors that a stitched state starts from, or the buffers that a stateful program writes.
    """

    def __init__(
        self, public: Callable[..., Any], fast: Callable[..., Any], state: Mapping[str, Tensor], stitched: bool
    ) -> None:
        self._public = public
        self._fast = fast
        self._names = list(state)
        self._tensors = list(state.values())
        self._stitched = stitched
        self._may_split = stitched and may_split(self._tensors)

    @property
    def state(self) -> dict[str, Tensor]:
        return dict(zip(self._names, self._tensors, strict=True))

    def write(self, state: Mapping[str, Tensor]) -> None:
        if self._stitched:
            self._tensors = [state[name] for name in self._names]
        else:
            for buffer, name in zip(self._tensors, self._names, strict=True):
                buffer.copy_(state[name])

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """A stitched y is copied: Inductor returns an h that is a view of y's last row, and the caller may change y."""
        y: Tensor = self._stitch(self._public, x).clone() if self._stitched else self._public(x)
        return y

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self._stitch, self._fast, x) if self._stitched else partial(self._fast, x)

    def _stitch(self, call: Callable[..., Any], x: Tensor) -> Tensor:
        y: Tensor
        y, *self._tensors = call(x, *self._tensors)
        if self._may_split:
            self._tensors = of_their_own(self._tensors)
        return y
