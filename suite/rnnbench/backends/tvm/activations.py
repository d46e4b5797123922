"""Vector arithmetic of the kernels: a rational tanh, and the sigmoid that follows from it.

`T.tanh` and `T.sigmoid` become scalar calls of `tanhf` and `expf`, which take longer than a small layer's products.
The quotient of an odd and an even polynomial needs only operations on vectors: add, multiply, min, max, one division.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

BOUND = 9.0
"""tanh is 1 to within float32 beyond this."""

NUMERATOR = (
    4.89352455891786e-03,
    6.37261928875436e-04,
    1.48572235717979e-05,
    5.12229709037114e-08,
    -8.60467152213735e-11,
    2.00018790482477e-13,
    -2.76076847742355e-16,
)
DENOMINATOR = (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)
"""Coefficients of x², lowest first: tanh(x) ≈ x·N(x²)/D(x²). The fit is that of Eigen's `ptanh` (Eigen/src/Core)."""

MAX_ERROR = 3.3e-7
"""Bound of the absolute error over all of float32: 3.26e-7 for tanh (at 8.4755), 1.82e-7 for the sigmoid."""

Expr = Any
"""A TVM expression: a vector of `lanes` float32, or the scalar that is broadcast to one."""


@dataclass(frozen=True)
class Quotient:
    """A value kept as numerator and denominator (None is 1), so that a product of several takes one division."""

    numerator: Expr
    denominator: Expr = None

    def __mul__(self, other: Quotient) -> Quotient:
        if self.denominator is None or other.denominator is None:
            denominator = other.denominator if self.denominator is None else self.denominator
            return Quotient(self.numerator * other.numerator, denominator)
        return Quotient(self.numerator * other.numerator, self.denominator * other.denominator)

    def value(self) -> Expr:
        return self.numerator if self.denominator is None else self.numerator / self.denominator


class VectorMath:
    """Expressions over vectors of `lanes` float32. In `max` and `min` the bound comes first, so that NaN passes."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def constant(self, value: float) -> Expr:
        return self.broadcast(tirx.FloatImm("float32", value))

    def broadcast(self, scalar: Expr) -> Expr:
        return tirx.Broadcast(scalar, self.lanes)

    def load(self, buffer: Expr, start: Expr) -> Expr:
        return buffer[tirx.Ramp(start, 1, self.lanes)]

    def store(self, buffer: Expr, start: Expr, value: Expr) -> None:
        T.buffer_store(buffer, value, [tirx.Ramp(start, 1, self.lanes)])

    def stored(self, value: Expr) -> Expr:
        """The value, computed once and stored.

        `T.Bind` does not do this: the simplifier repeats its expression wherever it is used. The buffer has the scope
        `global`, because TVM puts such buffers (below 1 KiB) on the stack, and LLVM takes them to registers from there.
        It does not do that with the scope `local`.
        """
        vector = T.alloc_buffer((self.lanes,), "float32")
        T.buffer_store(vector, value, [tirx.Ramp(0, 1, self.lanes)])
        return vector[tirx.Ramp(0, 1, self.lanes)]

    def clamp(self, x: Expr, bound: float) -> Expr:
        return self.stored(T.max(self.constant(-bound), T.min(self.constant(bound), x)))

    def relu(self, x: Expr) -> Quotient:
        return Quotient(self.stored(T.max(self.constant(0.0), x)))

    def hard_sigmoid(self, x: Expr) -> Quotient:
        """max(0, min(1, 0.2·x + 0.5))."""
        line = x * self.constant(0.2) + self.constant(0.5)
        return Quotient(self.stored(T.max(self.constant(0.0), T.min(self.constant(1.0), line))))

    def tanh(self, x: Expr) -> Quotient:
        x = self.clamp(x, BOUND)
        square = self.stored(x * x)
        odd = self.stored(x * self._polynomial(NUMERATOR, square))
        return Quotient(odd, self.stored(self._polynomial(DENOMINATOR, square)))

    def sigmoid(self, x: Expr) -> Quotient:
        """½ + ½·tanh(x/2), over one denominator."""
        half = self.tanh(x * self.constant(0.5))
        return Quotient(half.numerator + half.denominator, half.denominator + half.denominator)

    def _polynomial(self, coefficients: tuple[float, ...], x: Expr) -> Expr:
        total = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total * x + self.constant(coefficient)
        return total
