"""Laws of the matrix: a product is what it is, patterns drop what they match and nothing else."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.cases.matrix import Candidate, identity, matches, product, resolved, size, unmatched, without

numbers = st.integers(1, 6)
axes = st.fixed_dictionaries(
    {
        "hidden": st.lists(numbers, min_size=1, max_size=3, unique=True).map(tuple),
        "steps": st.lists(numbers, min_size=1, max_size=3, unique=True).map(tuple),
        "chunk": st.lists(numbers | st.just("all"), min_size=1, max_size=3, unique=True).map(tuple),
        "time": st.lists(st.sampled_from(["fused", "looped"]), min_size=1, max_size=2, unique=True).map(tuple),
    }
)
patterns = st.dictionaries(
    st.sampled_from(["hidden", "steps", "chunk"]),
    st.lists(numbers, min_size=1, max_size=2, unique=True).map(tuple),
    min_size=1,
    max_size=2,
)


@examples(40)
@given(axes)
def test_a_product_has_every_combination_once(axes):
    points = list(product(axes))
    assert size(axes) == math.prod(map(len, axes.values()))
    assert len({identity(point.values) for point in points}) == len(points) <= size(axes)
    if "all" not in axes["chunk"]:
        assert len(points) == size(axes)
    for point in points:
        assert all(point.written[leaf] in values for leaf, values in axes.items())
        assert point.values == resolved(point.written)
        assert point.values["chunk"] != "all"


@examples(40)
@given(axes, st.lists(patterns, max_size=3))
def test_what_is_left_and_what_is_dropped_make_the_whole(axes, excluded):
    points = list(product(axes))
    kept = without(points, excluded)
    dropped = [point for point in points if any(matches(pattern, point.values) for pattern in excluded)]
    assert [point for point in points if point not in dropped] == kept
    assert len(kept) + len(dropped) == len(points)
    assert without(kept, excluded) == kept
    assert without(points, list(reversed(excluded))) == kept


@examples(40)
@given(axes, patterns)
def test_a_pattern_with_no_value_of_some_leaf_matches_nothing(axes, pattern):
    lost = unmatched(pattern, axes)
    matched = [point for point in product(axes) if matches(pattern, point.values)]
    if any(all((leaf, index) in lost for index in range(len(values))) for leaf, values in pattern.items()):
        assert not matched
    seen = {leaf: {point.values[leaf] for point in product(axes)} for leaf in pattern}
    assert lost == [
        (leaf, index)
        for leaf, values in pattern.items()
        for index, value in enumerate(values)
        if value not in seen[leaf]
    ]


def test_all_is_the_steps_of_each_point():
    axes = {"steps": (8, 16), "chunk": (8, "all")}
    points = [point.values for point in product(axes)]
    assert points == [{"steps": 8, "chunk": 8}, {"steps": 16, "chunk": 8}, {"steps": 16, "chunk": 16}]
    assert [matches({"chunk": ("all",)}, point) for point in points] == [True, False, True]


def test_the_last_axis_is_the_fastest():
    first, second, *_ = product({"steps": (4,), "chunk": (1, 2), "time": ("fused", "looped")})
    assert first == Candidate(*2 * ({"steps": 4, "chunk": 1, "time": "fused"},))
    assert second.values == {"steps": 4, "chunk": 1, "time": "looped"}


def test_all_in_a_pattern_is_there_where_a_chunk_is_all_the_steps_and_the_steps_where_a_chunk_is_all():
    with_all, without = {"steps": (8, 16), "chunk": (4, "all")}, {"steps": (8,), "chunk": (4, 8)}
    assert unmatched({"chunk": (8, 16, "all")}, with_all) == []
    assert unmatched({"chunk": ("all",)}, without) == []
    assert unmatched({"chunk": (16, "all", 4)}, {"steps": (8,), "chunk": (4,)}) == [("chunk", 0), ("chunk", 1)]
