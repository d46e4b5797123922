"""The matrix of a case: the product of its axes, patterns that drop points from it, and points added to it.

A point has a value for every leaf (a key of a section that makes trials). `chunk: all` is resolved to the point's own
steps, in axes, in patterns and in added points.
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
"""Leaf names, each with the values that match."""

MAX_TRIALS = 10_000


@dataclass(frozen=True)
class Candidate:
    """A point before it is checked."""

    values: Values
    """The values with `chunk: all` resolved."""
    written: Values
    """The values as in the file, where `all` is not resolved."""
    added: int | None = None
    """Its entry's index in `matrix.include`; None for a point of the product."""


def size(axes: Axes) -> int:
    """The number of points of the product, without making them."""
    return math.prod(len(values) for values in axes.values())


def product(axes: Axes) -> Iterator[Candidate]:
    """Each different point once; the last axis changes fastest. If `all` makes two points equal, the first is kept."""
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
    """A hashable key of a point. Two points with the same key are the same."""
    return tuple(values.values())


def matches(pattern: Mapping[str, Collection[Value]], values: Values) -> bool:
    """Whether a resolved point has, for each leaf of the pattern, one of its values."""
    return all(_has(matching, leaf, values) for leaf, matching in pattern.items())


def unmatched(pattern: Pattern, axes: Axes) -> list[tuple[str, int]]:
    """The values of a pattern that no point of the product has, as leaf and index."""
    unmatched_values = []
    for leaf, matching in pattern.items():
        existing = set(axes[leaf])
        if leaf == "chunk":
            existing |= set(axes["steps"]) if "all" in existing else set()
            existing |= {"all"} if existing & set(axes["steps"]) else set()
        unmatched_values += [(leaf, index) for index, value in enumerate(matching) if value not in existing]
    return unmatched_values


def without(candidates: Sequence[Candidate], patterns: Sequence[Pattern]) -> list[Candidate]:
    """The candidates that no pattern matches."""
    sets = [{leaf: frozenset(values) for leaf, values in pattern.items()} for pattern in patterns]
    return [c for c in candidates if not any(matches(pattern, c.values) for pattern in sets)]


def _has(matching: Collection[Value], leaf: str, values: Values) -> bool:
    return values[leaf] in matching or (leaf == "chunk" and "all" in matching and values["chunk"] == values["steps"])
