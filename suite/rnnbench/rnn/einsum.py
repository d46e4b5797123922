"""The parts of an equation of `einsum`, for adapters whose framework has products of matrices and no einsum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Contraction:
    """Letters of the axes of two values and of their product: `tn,sn->ts`."""

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
        """The letters of the first value alone."""
        return "".join(letter for letter in self.a if letter not in self.b)

    @property
    def right(self) -> str:
        """The letters of the second value alone."""
        return "".join(letter for letter in self.b if letter not in self.a)

    @property
    def is_product(self) -> bool:
        """Whether it is a product of matrices [left, summed] and [summed, right], one for each element of the batch.

        What is none is a product of elements, and a sum over `summed`.
        """
        return len(self.left) == len(self.right) == len(self.summed) == 1

    @property
    def product_letters(self) -> tuple[str, str, str]:
        """The axes of the first matrices, of the second ones, and of their products, in the order of a product."""
        return (
            self.batch + self.left + self.summed,
            self.batch + self.summed + self.right,
            self.batch + self.left + self.right,
        )

    @property
    def every(self) -> str:
        """All letters, those that are summed over last: the axes of a product of elements."""
        return self.out + self.summed


@cache
def contraction(equation: str) -> Contraction:
    """Raises ValueError for an equation that is not of the kind that `MorePrimitives.einsum` describes."""
    inputs, arrow, out = equation.partition("->")
    a, comma, b = inputs.partition(",")
    found = Contraction(a, b, out)
    letters = set(a) | set(b)
    twice = any(len(set(part)) != len(part) for part in (a, b, out))
    if not (arrow and comma) or twice or not set(out) <= letters or any(one not in b for one in found.summed):
        raise ValueError(f"einsum: {equation}")
    if any(letter not in out for letter in found.right):
        raise ValueError(f"einsum: {equation}")
    return found


def permutation(letters: str, order: str) -> tuple[int, ...]:
    """The axes of a value with these letters, in the order of the letters `order`."""
    return tuple(letters.index(letter) for letter in order)


def aligned(letters: str, every: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How a value with these letters comes to have an axis for each letter of `every`: its permutation, then the places
    of new axes of size 1."""
    present = "".join(letter for letter in every if letter in letters)
    return permutation(letters, present), tuple(i for i, letter in enumerate(every) if letter not in letters)
