"""What changed of a trial that is no number, in words: outcomes, checks, support, lowered forms, what is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from rnnbench.results.record import FAILURES

Fact = Literal["outcome", "failed_checks", "support", "lowered", "believed", "versions", "measured"]
FACTS: tuple[Fact, ...] = get_args(Fact)


def fact_sentence(fact: str, before: str, after: str, detail: str = "") -> str:
    """What happened to a fact of FACTS, without its subject: "became unrolled 16 (it was looped 1)"."""
    return _SENTENCES[fact](before, after) + (f": {detail}" if detail else "")


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
