"""Where the arrays of a model file lie: the suite has [steps, batch, size], a file its own order of axes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

TIME, BATCH = "n", "batch"
FLOATS = ("bfloat16", "float16", "float32", "float64")
"""The types of numbers that are rounded, the narrowest first. bfloat16 and float16 each have numbers that the other
lacks."""
_TAKEN = re.compile(r"(?:state\.)*(?:x|y|lengths|next_.*|~.*)", re.DOTALL)
"""Names of the suite's own arrays, and names that this module makes of them. Next states are `next_…`."""


def widest(dtypes: Iterable[str]) -> str:
    """The narrowest type that has all numbers of these. The suite feeds whole numbers in float32 at the least."""
    floats = {dtype if dtype in FLOATS else "float32" for dtype in dtypes}
    return "float32" if floats == {"bfloat16", "float16"} else max(floats, key=FLOATS.index)


class Layout(NamedTuple):
    """How an array of the suite becomes one of the file: cut into `split`, its axes in `order`, seen as `native`."""

    split: tuple[int, ...]
    order: tuple[int, ...]
    native: tuple[int, ...]


class FileArray(BaseModel):
    """An array of a file: `shape` in the file's order, with `n` for the steps of a call and `batch` for its rows."""

    model_config = ConfigDict(frozen=True)

    name: str
    shape: tuple[int | str, ...]
    dtype: str = "float32"
    """The type in the file. The suite has integers of x as whole numbers in its type."""
    is_new: bool = False
    """Whether it is given or made anew in each call, and so is no state. Plans of older runs do not say it."""

    def __str__(self) -> str:
        return f"{self.name} [{', '.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """Elements of one step of one row."""
        return prod(dim for dim in self.shape if isinstance(dim, int))

    @property
    def is_state_of_layers(self) -> bool:
        """Whether it is [rows, batch, size], as the suite has states."""
        return not self.is_new and len(self.shape) == 3 and self.shape[1] == BATCH and TIME not in self.shape

    def layout(self, steps: int, batch: int) -> Layout:
        """The layout of an array [steps, batch, size] of the suite. A state of layers has the same layout in both."""
        sizes = {TIME: steps, BATCH: batch}
        native = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.shape)
        if self.is_state_of_layers:
            return Layout(native, (0, 1, 2), native)
        places = [self.shape.index(dim) for dim in (TIME, BATCH) if dim in self.shape]
        places += [place for place, dim in enumerate(self.shape) if isinstance(dim, int)]
        order = tuple(places.index(place) for place in range(len(native)))
        return Layout(tuple(native[place] for place in places), order, native)

    def to_file(self, array: np.ndarray) -> np.ndarray:
        """An array of the suite as the file has it."""
        layout = self.layout(array.shape[0], array.shape[1])
        return array.reshape(layout.split).transpose(layout.order)

    def from_file(self, array: np.ndarray, steps: int, batch: int) -> np.ndarray:
        """The inverse of `to_file`."""
        layout = self.layout(steps, batch)
        back = array.reshape(layout.native).transpose(np.argsort(layout.order))
        return back if self.is_state_of_layers else back.reshape(steps, batch, self.size)

    def state_shape(self, batch: int) -> tuple[int, int, int]:
        """The shape that it has as a state of the suite, [rows, batch, size]."""
        rows, _, size = self.shape if self.is_state_of_layers else (1, BATCH, self.size)
        return int(rows), batch, int(size)


class CarriedState(BaseModel):
    """A state: the output `after` of one call is the input `before` of the next."""

    model_config = ConfigDict(frozen=True)

    before: FileArray
    after: FileArray
    has_start: bool = False
    """Whether the file has a value for it before the first call that is not zero. Streams begin at zero."""

    @property
    def next_in_words(self) -> str:
        """Its next value, with its type where this is not float32."""
        return f"{self.after}{f' {self.after.dtype}' if self.after.dtype != 'float32' else ''}"

    @property
    def name(self) -> str:
        """What the suite calls it: as the file calls its input, but for names that arrays of the suite have."""
        name = self.before.name
        return f"state.{name}" if _TAKEN.fullmatch(name) else name
