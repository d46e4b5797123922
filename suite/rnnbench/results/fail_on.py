"""What makes `rnnbench compare` fail: the names of `--fail-on`, each with what it counts (docs/reports.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnnbench.results.costs import COSTS, RISES
from rnnbench.results.record import FAILURES
from rnnbench.spelling import hint

if TYPE_CHECKING:
    from rnnbench.results.compare import Comparison


@dataclass(frozen=True)
class FailOn:
    """One name of `--fail-on`."""

    name: str
    found: str
    """Words for the trials that it counts: "2 trials *no longer conforming*"."""
    count: Callable[[Comparison], int]
    nouns: tuple[str, str] = ("trial", "trials")

    def words(self, count: int) -> str:
        """`2 trials no longer conforming`."""
        return f"{count:,} {self.nouns[count != 1]} {self.found}"


def _outcome(*outcomes: str) -> Callable[[Comparison], int]:
    return lambda comparison: sum(
        change.fact == "outcome" and change.base == "ok" and change.new in outcomes for change in comparison.facts
    )


def _worse(fact: str) -> Callable[[Comparison], int]:
    return lambda comparison: sum(change.fact == fact and change.direction == "worse" for change in comparison.facts)


def _rise(kind: str) -> Callable[[Comparison], int]:
    measures = {cost.name for cost in COSTS.values() if cost.kind == kind}
    return lambda comparison: len(
        {change.trial for change in comparison.costs if change.measure in measures and change.result in RISES}
    )


FAIL_ON: Mapping[str, FailOn] = {
    condition.name: condition
    for condition in (
        FailOn("nonconforming", "no longer conforming", _outcome("nonconforming")),
        FailOn("failed", "failing", _outcome(*FAILURES)),
        FailOn(
            "unsupported",
            "no longer supported or installed",
            _outcome("unsupported", "unavailable"),
        ),
        FailOn(
            "slower",
            "SLOWER",
            lambda comparison: comparison.count("SLOWER"),
            ("latency", "latencies"),
        ),
        FailOn("vanished", "vanished", _worse("measured")),
        FailOn(
            "checks",
            "failing more checks",
            _worse("failed_checks"),
        ),
        FailOn("believed", "no longer believed", _worse("believed")),
        FailOn("support", "with less support", _worse("support")),
        FailOn(
            "lowered",
            "lowered to another form",
            lambda comparison: sum(change.fact == "lowered" for change in comparison.facts),
        ),
        FailOn("build", "slower to build", _rise("build")),
        FailOn("memory", "with more memory", _rise("memory")),
        FailOn("artifact", "with a larger artifact", _rise("artifact")),
        FailOn(
            "operations",
            "with more operations",
            _rise("operations"),
        ),
    )
}
DEFAULT_FAIL_ON = ("nonconforming", "failed", "unsupported", "slower")
ACROSS_MACHINES_FAIL_ON = ("nonconforming", "failed", "unsupported")
"""The default between two machines: a slower machine is no regression."""


def parse_fail_on(texts: Iterable[str]) -> tuple[str, ...]:
    """Names, each text with one or several between commas; `all` is every name, `none` is none. Raises ValueError."""
    names = [name.strip() for text in texts for name in text.split(",")]
    meanings = {**{name: (name,) for name in FAIL_ON}, "all": tuple(FAIL_ON), "none": ()}
    for name in names:
        if name not in meanings:
            raise ValueError(f"unknown name '{name}'; {hint(name, meanings)}")
    if "none" in names and len(set(names)) > 1:
        raise ValueError("'none' stands alone; leave it out, or leave out the other names")
    chosen = {condition for name in names for condition in meanings[name]}
    return tuple(name for name in FAIL_ON if name in chosen)
