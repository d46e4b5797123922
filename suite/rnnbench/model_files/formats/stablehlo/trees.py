"""States by the trees of arguments and results that JAX tells: `step(carry, x)` gives `(carry, y)`.

An argument that is a tree of several arrays, such as (c, h), is a state where one part of the results is the same tree.
Where the text does not name its arguments, or a state is one array, the order of both makes a proposal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rnnbench.model_files.description import StatePair
from rnnbench.model_files.formats.stablehlo.graph import MlirArray

Place = tuple[str, ...]
_Leaf = tuple[Place, tuple[int, ...], str]


def pairs_of_trees(inputs: Sequence[MlirArray], outputs: Sequence[MlirArray]) -> tuple[StatePair, ...]:
    """Each array of an argument with the one at the same place of a result, where only one result has its tree."""
    arguments: dict[str, list[MlirArray]] = {}
    for array in inputs:
        if len(array.path) > 1:
            arguments.setdefault(array.path[0], []).append(array)
    results = {prefix for array in outputs for prefix in _prefixes(_in_result(array))}
    trees = {prefix: _under(prefix, outputs) for prefix in results}
    fits = {
        root: [prefix for prefix, tree in trees.items() if list(map(_leaf, leaves)) == [leaf for leaf, _ in tree]]
        for root, leaves in arguments.items()
        if len(leaves) > 1
    }
    taken = [prefix for prefixes in fits.values() for prefix in prefixes]
    matches = {
        root: prefixes[0] for root, prefixes in fits.items() if len(prefixes) == 1 and taken.count(prefixes[0]) == 1
    }
    pairs = tuple(
        StatePair(before.name, after.name, "tree")
        for root, prefix in matches.items()
        for before, (_, after) in zip(arguments[root], trees[prefix], strict=True)
    )
    return pairs if len(pairs) < len(inputs) else ()  # Some argument is new in each call.


def proposals(inputs: Sequence[MlirArray], outputs: Sequence[MlirArray]) -> Iterator[dict[str, str]]:
    """States by the order: the first arguments and the first part of the results, or the last ones of both."""
    parts: dict[Place, list[MlirArray]] = {}
    for array in outputs:
        parts.setdefault(_in_result(array)[:1], []).append(array)
    if len(parts) < 2:
        return
    first, last = next(iter(parts.values())), list(parts.values())[-1]
    for arguments, results in ((inputs[: len(first)], first), (inputs[-len(last) :], last)):
        if len(arguments) < len(inputs) and list(map(_kind, arguments)) == list(map(_kind, results)):
            yield {before.name: after.name for before, after in zip(arguments, results, strict=True)}


def _in_result(array: MlirArray) -> Place:
    """Its place in the results. JAX calls them `result`."""
    return array.path[1:] if array.path[:1] == ("result",) else array.path


def _prefixes(place: Place) -> Iterator[Place]:
    return (place[:length] for length in range(len(place)))


def _under(prefix: Place, outputs: Sequence[MlirArray]) -> list[tuple[_Leaf, MlirArray]]:
    inside = [array for array in outputs if _in_result(array)[: len(prefix)] == prefix]
    return [((_in_result(array)[len(prefix) :], *_kind(array)), array) for array in inside]


def _leaf(array: MlirArray) -> _Leaf:
    return (array.path[1:], *_kind(array))


def _kind(array: MlirArray) -> tuple[tuple[int, ...], str]:
    return array.shape, array.dtype
