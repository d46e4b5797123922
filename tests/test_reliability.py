"""The counts on the page about reliability are those of the tables that its tests go through."""

from __future__ import annotations

from pathlib import Path

from planted_sets import PLANTED
from ways_of_dying import WAYS

PAGE = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text()


def test_the_planted_set_is_as_large_as_the_page_says_and_has_200_or_more():
    total = sum(map(len, PLANTED.values()))
    assert total >= 200
    assert f"{total} planted programs" in PAGE
    for what, names in PLANTED.items():
        assert len(set(names)) == len(names)
        assert f"| {what} | {len(names)} |" in PAGE


def test_the_ways_of_dying_are_as_many_as_the_page_says():
    assert f"{len(WAYS)} ways" in PAGE
