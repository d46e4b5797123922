"""How much of the whole product of their axes a run's trials cover: points, and pairs of values that met in a trial."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod

from pydantic import ValidationError

from rnnbench.results import Record
from rnnbench.rnn import Model
from rnnbench.spelling import count

Pair = tuple[tuple[str, object], tuple[str, object]]


@dataclass(frozen=True)
class Coverage:
    """Coverage of one case. A pair is two values of different axes that stand in one trial."""

    case: str
    points: int
    product: int
    """Points of the whole product of the axes, those that contradict themselves included."""
    pairs: int
    """Pairs that some point has: what can be covered at all, where the case is a covering array."""
    all_pairs: int
    """Pairs of the whole product."""
    checked: dict[str, int]
    """By target, those of the pairs that it was checked on, whatever case the trial was of."""


def coverage(records: Sequence[Record]) -> list[Coverage]:
    """By case, in the order of the records."""
    return [_of_case(case, records) for case in dict.fromkeys(record.case for record in records)]


def sentences(case: Coverage) -> Iterable[str]:
    """Sentences on a case's coverage; none for a case with less than two axes."""
    if not case.pairs:
        return
    if case.points == case.product:
        yield f"{case.case}: all {count(case.points, 'point')} of the product of its axes"
    else:
        part = case.points / case.product
        yield (
            f"{case.case}: {count(case.points, 'point')} of a product of {case.product:,} ({part:.2g} of it), "
            f"with {case.pairs:,} of its {case.all_pairs:,} pairs of values"
        )
    shares = (f"{target} {100 * count / case.pairs:.0f} %" for target, count in sorted(case.checked.items()))
    yield f"  pairs supported and checked: {', '.join(shares)}"


def _of_case(case: str, records: Sequence[Record]) -> Coverage:
    points = [_values(record) for record in records if record.case == case]
    # Networks have different keys. A key that a network does not have counts as the value None.
    axes = {leaf: {point.get(leaf) for point in points} for leaf in dict.fromkeys(chain(*points))}
    axes = {leaf: values for leaf, values in axes.items() if len(values) > 1}
    sizes = [len(values) for values in axes.values()]
    pairs = {pair for point in points for pair in _pairs(point, axes)}
    checked: dict[str, set[Pair]] = {record.target: set() for record in records if record.case == case}
    for record in records:
        if record.conformance and record.target in checked:
            checked[record.target] |= pairs.intersection(_pairs(_values(record), axes))
    return Coverage(
        case=case,
        points=len({tuple(point.items()) for point in points}),
        product=prod(sizes),
        pairs=len(pairs),
        all_pairs=(sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2,
        checked={target: len(met) for target, met in checked.items()},
    )


def _values(record: Record) -> dict[str, object]:
    """The values of a trial by leaf; a call of all its steps is `all`."""
    params = record.params.model_dump()
    model_params = params.pop("model")
    try:
        model = Model.model_validate(model_params).model_dump()
    except ValidationError:
        model = model_params  # Of a damaged record, or of a model that this version does not know.
    chunk = "all" if params["chunk"] == params["steps"] else params["chunk"]
    values = {**model, **params, "chunk": chunk}
    return {leaf: value if isinstance(value, Hashable) else str(value) for leaf, value in values.items()}


def _pairs(point: dict[str, object], axes: Iterable[str]) -> Iterable[Pair]:
    return combinations(((leaf, point.get(leaf)) for leaf in axes), 2)
