"""The parts of an `einsum` equation, for adapters whose framework has matrix products and no einsum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Contraction:
    """The letters of the axes of two values and of their product: `tn,sn->ts`."""

    a: str
    b: str
    out: str

    @property
    def summed(self) -> str:
        """The letters that the output lacks, which both values have."""
        return "".join(letter for letter in self.a if letter not in self.out)

    @property
    def batch(self) -> str:
        """The letters of both values and of the output."""
        return "".join(letter for letter in self.out if letter in self.a and letter in self.b)

    @property
    def left(self) -> str:
        """The letters that only the first value has."""
        return "".join(letter for letter in self.a if letter not in self.b)

    @property
    def right(self) -> str:
        """The letters that only the second value has."""
        return "".join(letter for letter in self.b if letter not in self.a)

    @property
    def is_product(self) -> bool:
        """Whether it is a product of matrices [left, summed] and [summed, right], one for each element of the batch.

        Otherwise it is an elementwise product, and a sum over `summed`.
        """
        return len(self.left) == len(self.right) == len(self.summed) == 1

    @property
    def product_letters(self) -> tuple[str, str, str]:
        """The letters of the axes of both matrices and of their product, in the order that a matrix product needs."""
        return (
            self.batch + self.left + self.summed,
            self.batch + self.summed + self.right,
            self.batch + self.left + self.right,
        )

    @property
    def row_axes(self) -> tuple[int, ...]:
        """Where new axes of size 1 make rows of the first value, if it is a product of these with matrices; else empty.

        The last axes are then [1, summed] of the rows, and [summed, last letter] of the matrices, which are the second
        value as it is. Matrices share a row if the first value lacks their letter.
        """
        rows, column = self.out[:-1], self.out[-1]
        if len(self.summed) != 1 or self.b != rows + self.summed + column or column in self.a:
            return ()
        order, new = aligned(self.a, f"{rows}1{self.summed}")
        return new if order == tuple(sorted(order)) else ()

    @property
    def every(self) -> str:
        """All letters, the summed ones last: the axes of an elementwise product."""
        return self.out + self.summed


@cache
def contraction(equation: str) -> Contraction:
    """The parts of an equation. Raises ValueError if it is not of the kind of `MorePrimitives.einsum`."""
    inputs, arrow, out = equation.partition("->")
    a, comma, b = inputs.partition(",")
    parts = Contraction(a, b, out)
    letters = set(a) | set(b)
    twice = any(len(set(part)) != len(part) for part in (a, b, out))
    if not (arrow and comma) or twice or not set(out) <= letters or any(letter not in b for letter in parts.summed):
        raise ValueError(f"einsum: expected two operands with each letter once, as in bhk,bhkv->bhv, got '{equation}'")
    if any(letter not in out for letter in parts.right):
        raise ValueError(f"einsum: expected each letter of the second operand alone in the result, got '{equation}'")
    return parts


def permutation(letters: str, order: str) -> tuple[int, ...]:
    """The axes of a value with these letters, in the order of the letters `order`."""
    return tuple(letters.index(letter) for letter in order)


def aligned(letters: str, every: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How to give a value with these letters an axis for each letter of `every`.

    Returns the permutation of its axes, and the places of new axes of size 1.
    """
    present = "".join(letter for letter in every if letter in letters)
    return permutation(letters, present), tuple(i for i, letter in enumerate(every) if letter not in letters)
