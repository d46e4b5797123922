"""How much of the whole product of their axes a run's trials cover: points, and pairs of values that met in a trial."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from rnnbench.reports import units
from rnnbench.results.record import Record
from rnnbench.rnn.spec import Model

Pair = tuple[tuple[str, object], tuple[str, object]]


@dataclass(frozen=True)
class Coverage:
    """Of one case's records. A value is one of an axis; two of different axes that stand in one trial are a pair."""

    case: str
    points: int
    product: int
    """Points of the whole product of the axes, those that contradict themselves included."""
    pairs: int
    """Pairs that some point has: what can be covered at all, where the case is a covering array."""
    all_pairs: int
    """Pairs of the whole product."""
    checked: dict[str, int]
    """By target, the pairs of trials that it supports and that came to be checked."""


def coverage(records: Sequence[Record]) -> list[Coverage]:
    """By case, in the order of the records."""
    cases = dict.fromkeys(record.case for record in records)
    return [_of_case(case, [record for record in records if record.case == case]) for case in cases]


def sentences(found: Coverage) -> Iterable[str]:
    """What to print of it; nothing of a case that has no two axes."""
    if not found.pairs:
        return
    part = found.points / found.product
    yield (
        f"{found.case}: {units.count(found.points, 'point')} of a product of {found.product:,} ({part:.2g} of it), "
        f"with {found.pairs:,} of its {found.all_pairs:,} pairs of values"
    )
    shares = (f"{target} {count / found.pairs:.0%}" for target, count in sorted(found.checked.items()))
    yield f"  pairs supported and checked: {', '.join(shares)}"


def _of_case(case: str, records: Sequence[Record]) -> Coverage:
    values = {record.trial: _values(record) for record in records}
    leaves = list(next(iter(values.values())))
    axes = {leaf: {point[leaf] for point in values.values()} for leaf in leaves}
    axes = {leaf: known for leaf, known in axes.items() if len(known) > 1}
    sizes = [len(known) for known in axes.values()]
    met = {record.trial: set(_pairs(values[record.trial], axes)) for record in records}
    checked: dict[str, set[Pair]] = {record.target: set() for record in records}
    for record in records:
        if record.conformance:
            checked[record.target] |= met[record.trial]
    points = {tuple(point.items()) for point in values.values()}
    return Coverage(
        case=case,
        points=len(points),
        product=prod(sizes),
        pairs=len(set().union(*met.values())),
        all_pairs=(sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2,
        checked={target: len(pairs) for target, pairs in checked.items()},
    )


def _values(record: Record) -> dict[str, object]:
    """The values of a trial by leaf; a call of all its steps is `all`."""
    params = record.params.model_dump()
    model = Model.model_validate(params.pop("model")).model_dump()
    chunk = "all" if params["chunk"] == params["steps"] else params["chunk"]
    return {**model, **params, "chunk": chunk}


def _pairs(point: dict[str, object], axes: Iterable[str]) -> Iterable[Pair]:
    return combinations(((leaf, point[leaf]) for leaf in axes), 2)
