"""The matrix of a case: the product of its axes, patterns that drop points from it, and points added to it.

A point is written with a value for every leaf. `chunk: all` is resolved: it means the point's own steps, in axes, in
patterns and in added points alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

Value = str | int | float | bool | None
Axes = Mapping[str, tuple[Value, ...]]
"""Every leaf with its values, one or more, in the order of the file's sections."""
Values = Mapping[str, Value]
"""A value for every leaf, in that order."""
Pattern = Mapping[str, tuple[Value, ...]]
"""Leaf names with the values to match, any of them."""

MAX_TRIALS = 10_000


@dataclass(frozen=True)
class Candidate:
    """A point before it is checked: its values, resolved, and what of them was written where."""

    values: Values
    written: Values
    """As in the file, `all` unresolved."""
    added: int | None = None
    """Index in `matrix.include`; None for a point of the product."""


def size(axes: Axes) -> int:
    """Points of the product, without making them."""
    return math.prod(len(values) for values in axes.values())


def product(axes: Axes) -> Iterator[Candidate]:
    """Each different point once, the last axis fastest: where `all` is a number of its axis, the first stands."""
    seen = set()
    for combination in itertools.product(*axes.values()):
        written = dict(zip(axes, combination, strict=True))
        values = resolved(written)
        if (key := identity(values)) not in seen:
            seen.add(key)
            yield Candidate(values, written)


def resolved(written: Values) -> Values:
    """The values with `chunk: all` as the point's steps."""
    return {**written, "chunk": written["steps"]} if written["chunk"] == "all" else written


def identity(values: Values) -> tuple[Value, ...]:
    """What makes two points the same."""
    return tuple(values.values())


def matches(pattern: Mapping[str, Collection[Value]], values: Values) -> bool:
    """Whether a resolved point has, for each leaf of the pattern, one of its values."""
    return all(_has(wanted, leaf, values) for leaf, wanted in pattern.items())


def unmatched(pattern: Pattern, axes: Axes) -> list[tuple[str, int]]:
    """The values of a pattern that no point of the product has, as leaf and index."""
    lost = []
    for leaf, wanted in pattern.items():
        known = set(axes[leaf])
        if leaf == "chunk":
            known |= set(axes["steps"]) if "all" in known else set()
            known |= {"all"} if known & set(axes["steps"]) else set()
        lost += [(leaf, index) for index, value in enumerate(wanted) if value not in known]
    return lost


def without(candidates: Sequence[Candidate], patterns: Sequence[Pattern]) -> list[Candidate]:
    """The candidates that no pattern matches."""
    sets = [{leaf: frozenset(values) for leaf, values in pattern.items()} for pattern in patterns]
    return [c for c in candidates if not any(matches(pattern, c.values) for pattern in sets)]


def _has(wanted: Collection[Value], leaf: str, values: Values) -> bool:
    return values[leaf] in wanted or (leaf == "chunk" and "all" in wanted and values["chunk"] == values["steps"])
