"""The primitives that Python's own operators and slices are, for frameworks whose arrays have them."""

from __future__ import annotations

from typing import Any


class WithOperators:
    """A part of `rnn.cells.MorePrimitives`. A framework's own class adds the other primitives."""

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def sub(self, a: Any, b: Any) -> Any:
        return a - b

    def mul(self, a: Any, b: Any) -> Any:
        return a * b

    def div(self, a: Any, b: Any) -> Any:
        return a / b

    def columns(self, x: Any, start: int, stop: int) -> Any:
        return x[:, start:stop]

    def rows(self, x: Any, start: int, stop: int) -> Any:
        return x[start:stop]
