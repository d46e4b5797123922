"""What became of the time steps is said in the same words for every compiler."""

from __future__ import annotations

import pytest

from rnnbench.backends.shared import describe_lowered


@pytest.mark.parametrize(
    ("loops", "straight", "fused", "expected"),
    [
        ([1], 0, False, "looped 1"),
        ([1, 1], 0, False, "looped 2"),
        ([3], 0, False, "looped 1 of 3"),
        ([], 2, False, "unrolled 2"),
        ([], 0, True, "fused"),
        ([1, 4, 1], 3, True, "fused + looped 2 + looped 1 of 4 + unrolled 3"),
        ([], 0, False, ""),
    ],
)
def test_each_part_is_named(loops: list[int], straight: int, fused: bool, expected: str) -> None:
    assert describe_lowered(loops, straight, fused=fused) == expected


@pytest.mark.parametrize(
    ("time", "loops", "straight", "expected"),
    [
        ("parallel", [], 3, "parallel 3"),
        ("chunked:8", [1, 1], 0, "chunked 2 of 8"),
        ("chunked:8", [], 2, "chunked 2"),
        ("chunked:8", [1], 2, "chunked 1 of 8 + chunked 2"),
    ],
)
def test_copies_of_many_steps_have_names_of_their_own(
    time: str, loops: list[int], straight: int, expected: str
) -> None:
    assert describe_lowered(loops, straight, time=time) == expected
