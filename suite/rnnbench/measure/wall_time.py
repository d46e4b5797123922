"""A run's wall time by purpose: building, checking and sampling trials, imports, and the suite's own work."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

TRIAL_PARTS = ("build", "check", "sample")
"""The parts that trials need. Imports are counted separately; the rest is the suite's own work."""


class WallTime:
    """Adds up seconds by what they were spent on, since it was created."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def spent_on(self, what: str) -> Iterator[None]:
        """Add the seconds that the block takes to `what`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._seconds[what] += time.monotonic() - start

    def add(self, what: str, seconds: float) -> None:
        """Add seconds that were measured elsewhere."""
        self._seconds[what] += seconds

    def seconds(self) -> dict[str, float]:
        return {"total": time.monotonic() - self._started, **self._seconds}


def describe_seconds(seconds: Mapping[str, float]) -> str:
    """A sentence about a run's wall time: the parts of its trials, of imports and of the suite."""
    of_trials = sum(seconds.get(what, 0.0) for what in TRIAL_PARTS)
    imports, total = seconds.get("import", 0.0), seconds["total"]
    listed = ", ".join(f"{what} {seconds.get(what, 0.0):.0f} s" for what in TRIAL_PARTS)
    share = f" ({100 * (total - of_trials) / of_trials:.0f} % of the trials' time)" if of_trials else ""
    return (
        f"{total:.0f} s in total: {listed}; imports added {imports:.0f} s and the suite "
        f"{total - of_trials - imports:.1f} s{share}"
    )
