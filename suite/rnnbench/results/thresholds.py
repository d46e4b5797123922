"""Thresholds of a comparison: how much a measure may change before it matters, for each kind of measure and each case.

A kind of measure is declared here once. It is a key of `compare:` in case files and of `--threshold`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rnnbench.results.run_info import RunInfo
from rnnbench.results.verdict import SMALLEST
from rnnbench.spelling import hint


@dataclass(frozen=True)
class Threshold:
    """A kind of measure with its threshold where neither a case nor a command line gives one. All are shares."""

    key: str
    default: float
    least: float
    most: float
    description: str


THRESHOLDS: Mapping[str, Threshold] = {
    threshold.key: threshold
    for threshold in (
        Threshold("latency", SMALLEST, 0.001, 0.9, "Smallest change of a latency that matters, for every path."),
        Threshold("build", 0.25, 0.0, 10.0, "Smallest change of the time of a cold build that matters."),
        Threshold("memory", 0.1, 0.0, 10.0, "Smallest change of the peak memory of build and run that matters."),
        Threshold("artifact", 0.01, 0.0, 10.0, "Smallest change of the artifact's size that matters."),
        Threshold("operations", 0.0, 0.0, 10.0, "Smallest change of the number of operations that matters."),
    )
}
_WRITTEN = re.compile(r"(?:([a-z]+)=)?([0-9]+(?:\.[0-9]+)?) ?(%?)\Z")


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of one comparison. What the command gives counts first, then the case's own, then the default."""

    given: Mapping[str, float] = field(default_factory=dict)
    """Thresholds of the command line, by kind."""
    by_case: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Thresholds of each case's `compare:`, by kind."""

    @classmethod
    def for_run(cls, new: RunInfo, given: Mapping[str, float]) -> Thresholds:
        """The thresholds of a comparison in which `new` is the new run: its cases count, and not those of the base."""
        return cls(checked(given), _valid(new.thresholds))

    def of(self, kind: str, case: str) -> float:
        of_case = self.by_case.get(case, {})
        return self.given.get(kind, of_case.get(kind, THRESHOLDS[kind].default))


def checked(given: Mapping[str, float]) -> Mapping[str, float]:
    """The thresholds of a command or of Python. Raises ValueError for an unknown kind and for what is no share."""
    for kind, value in given.items():
        if kind not in THRESHOLDS:
            raise ValueError(f"unknown threshold '{kind}'; {hint(kind, THRESHOLDS)}")
        if not _is_possible(kind, value):
            least, most = THRESHOLDS[kind].least, THRESHOLDS[kind].most
            raise ValueError(
                f"the threshold of {kind} is a relative change from {least:g} to {most:g} (0.03 is 3 %), not {value}"
            )
    return given


def parse_thresholds(texts: Iterable[str]) -> dict[str, float]:
    """By kind, from `0.03` or `3%` (of latencies) and `memory=20%,build=0.5`. Raises ValueError."""
    given: dict[str, float] = {}
    for text in (part.strip() for several in texts for part in several.split(",")):
        written = _WRITTEN.match(text)
        if written is None:
            raise ValueError(
                f"expected a share such as 3% or 0.03, or KIND=SHARE with KIND one of {', '.join(THRESHOLDS)}; "
                f"got '{text}'"
            )
        if (kind := written[1] or "latency") in given:
            raise ValueError(f"the threshold of {kind} is given twice; give it once")
        given[kind] = float(written[2]) / (100 if written[3] else 1)
    return dict(checked(given))


def threshold_differences(base: RunInfo, new: RunInfo, cases: Sequence[str]) -> Iterator[str]:
    """A sentence for each case whose file had other thresholds in the base run."""
    for case in cases:
        old, young = base.thresholds.get(case, {}), new.thresholds.get(case, {})
        if old != young and case in base.cases and case in new.cases:
            yield (
                f"the thresholds of {case} are {_words(young)} in {new.run}, which count, and were {_words(old)} in "
                f"{base.run}"
            )


def _words(thresholds: Mapping[str, float]) -> str:
    return ", ".join(f"{kind} {value:.3g}" for kind, value in sorted(thresholds.items())) or "the defaults"


def _valid(by_case: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The thresholds in a run.json, which may be damaged or of a newer rnnbench."""
    return {
        case: {kind: value for kind, value in kinds.items() if kind in THRESHOLDS and _is_possible(kind, value)}
        for case, kinds in by_case.items()
    }


def _is_possible(kind: str, value: float) -> bool:
    return THRESHOLDS[kind].least <= value <= THRESHOLDS[kind].most
