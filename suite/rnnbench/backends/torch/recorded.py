"""A stream through a program that torch recorded: state passed in and out, kept in its buffers, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from rnnbench.backends.torch.stream import PreparedStream


class RecordedStream(PreparedStream):
    """`public` is called in `step`, `fast` in prepared calls: (x, h, c) to (y, h, c) with `stitched`, else x to y.

    `state` holds what a stitched state starts from; or the very buffers that a stateful program writes.
    """

    def __init__(
        self, public: Callable[..., Any], fast: Callable[..., Any], state: Mapping[str, Tensor], stitched: bool
    ) -> None:
        self._public = public
        self._fast = fast
        self._names = list(state)
        self._held = list(state.values())
        self._stitched = stitched

    @property
    def state(self) -> dict[str, Tensor]:
        return dict(zip(self._names, self._held, strict=True))

    def write(self, state: Mapping[str, Tensor]) -> None:
        if self._stitched:
            self._held = [state[name] for name in self._names]
        else:
            for held, name in zip(self._held, self._names, strict=True):
                held.copy_(state[name])

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Inductor returns an h that lies in y's last row, and y is the caller's: a stitched one is copied."""
        y: Tensor = self._stitch(self._public, x).clone() if self._stitched else self._public(x)
        return y

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self._stitch, self._fast, x) if self._stitched else partial(self._fast, x)

    def _stitch(self, call: Callable[..., Any], x: Tensor) -> Tensor:
        y: Tensor
        y, *self._held = call(x, *self._held)
        return y
