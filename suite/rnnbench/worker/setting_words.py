"""Words for the change of a setting of the process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rnnbench.spelling import listed

MOST_NAMED = 6
"""Settings, or parts of one, that a finding names."""


def some_of(names: Iterable[str]) -> str:
    """The first MOST_NAMED names, and how many more there are."""
    return listed(list(names), MOST_NAMED)


def from_to(before: object, after: object) -> str:
    return f"{after} instead of {before}"


def describe_named(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The names of the parts whose objects differ."""
    return some_of(name for name in before if before[name] is not after[name])


def nothing_more(before: object, after: object) -> str:
    """For a setting whose name says enough."""
    return ""
