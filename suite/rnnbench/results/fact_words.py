"""What changed of a trial that is no number: a sentence about it, and whether it is good or bad news."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from rnnbench.results.record import FAILURES

Fact = Literal["outcome", "failed_checks", "support", "lowered", "believed", "versions", "measured"]
FACTS: tuple[Fact, ...] = get_args(Fact)
Direction = Literal["worse", "better", "neutral"]
SUPPORT_LEVELS = ("native", "emulated", "unsupported")
"""From the best to the worst."""


def fact_sentence(fact: str, before: str, after: str, detail: str = "") -> str:
    """What happened to a fact of FACTS, without its subject: "became unrolled 16 (it was looped 1)"."""
    return _SENTENCES[fact](before, after) + (f": {detail}" if detail else "")


def fact_direction(fact: str, before: str, after: str) -> Direction:
    """Whether another value of a fact is bad or good news. A value that stays is neither."""
    if before == after or fact not in _DIRECTIONS:
        return "neutral"
    return _DIRECTIONS[fact](before, after)


def _outcome(before: str, after: str) -> str:
    if after == "unsupported":
        return "is no longer supported"
    if after == "unavailable":
        return "is no longer installed"
    if after == "nonconforming":
        return "no longer conforms" if before == "ok" else f"runs, and does not conform (it was {before})"
    if after in FAILURES:
        return f"ends as {after} (it was {before})"
    if before == "unsupported":
        return "is supported now"
    return "conforms again" if before == "nonconforming" else f"is ok again (it was {before})"


_SENTENCES: Mapping[str, Callable[[str, str], str]] = {
    "outcome": _outcome,
    "failed_checks": lambda before, after: (
        f"fails the checks: {after} (it failed {before or 'none'})"
        if after
        else f"no longer fails the checks: {before}"
    ),
    "support": lambda before, after: f"has {after} support (it was {before})",
    "lowered": lambda before, after: f"became {after} (it was {before})",
    "believed": lambda before, after: "is believed again" if after == "true" else "has figures that are not believed",
    "versions": lambda before, after: f"changed its versions: {before or 'none'} → {after or 'none'}",
    "measured": lambda before, after: "is new" if after == "true" else "is no longer measured",
}


def _of_outcome(before: str, after: str) -> Direction:
    return "worse" if before == "ok" else "better" if after == "ok" else "neutral"


def _of_failed_checks(before: str, after: str) -> Direction:
    """Worse where a check fails that did not fail before."""
    return "worse" if set(after.split(", ")) - set(before.split(", ")) - {""} else "better"


def _of_support(before: str, after: str) -> Direction:
    if not {before, after} <= set(SUPPORT_LEVELS):
        return "neutral"
    return "worse" if SUPPORT_LEVELS.index(after) > SUPPORT_LEVELS.index(before) else "better"


_DIRECTIONS: Mapping[str, Callable[[str, str], Direction]] = {
    "outcome": _of_outcome,
    "failed_checks": _of_failed_checks,
    "support": _of_support,
    "believed": lambda before, after: "better" if after == "true" else "worse",
    "measured": lambda before, after: "neutral" if after == "true" else "worse",
}
"""By fact, for those that can be good or bad news."""
