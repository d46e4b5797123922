"""Which tests are for `make test-all` alone.

`make test` says within minutes whether each route builds and is right in each time, whether each backend has each cell
and state, says why it refuses a request, and keeps what it declares. Left out are other combinations of these, faults
of upstream that are shown again, what takes a compiler many seconds, and in the other rooms what a quicker test shows.
`make test-all` finds a fault of one combination alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings

from rnnbench.cases.covering import greedy

VARIABLE = "RNNBENCH_TEST_ALL"
"""Where it is 1, all tests are run."""
PROOF, EACH_VALUE, FIRST = "proof", "each_value", "first"
"""Marks: of a test for the proof alone; of one for which a few combinations of its parameters will do; of one for which
the first of its parameters will do, with their number."""


def runs_all() -> bool:
    return os.environ.get(VARIABLE) == "1"


Thing = TypeVar("Thing")
EXAMPLES = 15 if runs_all() else 5
"""Of Hypothesis, where a test does not say how many. Fewer show the class of a fault, and more its corners."""


def examples(count: int) -> settings:
    """For a test that says how many examples show the corners of a fault."""
    quick = settings.default.derandomize and not runs_all()
    return settings(max_examples=min(count, EXAMPLES) if quick else count)


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The tests that are for the proof alone."""
    left = {item for item in items if item.get_closest_marker(PROOF)}
    others = [item for item in items if item not in left]
    for same in _by_test(others, FIRST):
        left |= {item for place, item in enumerate(same) if place >= _count(item)}
    for same in _by_test(others, EACH_VALUE):
        values = [{(name, repr(value)) for name, value in item.callspec.params.items()} for item in same]  # type: ignore[attr-defined]
        left |= set(same) - {same[place] for place in few(values, [1] * len(same))}
    return left


def _by_test(items: Iterable[pytest.Item], mark: str) -> Iterable[list[pytest.Item]]:
    """The items of each test that has the mark."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker(mark):
            found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return found.values()


def _count(item: pytest.Item) -> int:
    """How many parameters of its test are for `make test`."""
    (mark,) = item.iter_markers(FIRST)
    count: int = mark.args[0]
    return count


def few(things: Sequence[Iterable[Hashable]], costs: Sequence[int]) -> list[int]:
    """The places of a few of these that together have all of the things, for little cost."""
    bits: dict[Hashable, int] = {}
    covers = [sum(1 << bits.setdefault(thing, len(bits)) for thing in set(of_one)) for of_one in things]
    return greedy(covers, costs, [])


def for_proof(*parameters: object) -> list[ParameterSet]:
    """Parameters of a test, for the proof alone. One of several names is a tuple, as in `parametrize`."""
    sets = (each if isinstance(each, tuple) else (each,) for each in parameters)
    return [pytest.param(*values, marks=getattr(pytest.mark, PROOF)) for values in sets]


def one_of_each_class(things: Iterable[Thing], class_of: Callable[[Thing], Hashable]) -> list[ParameterSet]:
    """Parameters of a test: the first of each class, and the others for the proof."""
    seen: set[Hashable] = set()
    sets = []
    for thing in things:
        group = class_of(thing)
        sets += for_proof(thing) if group in seen else [pytest.param(thing)]
        seen.add(group)
    return sets
