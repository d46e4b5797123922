"""Where a run's wall time goes: what its trials spend building, checking and sampling, and what the suite adds."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

TRIALS_OWN = ("build", "check", "sample")
"""What trials spend; imports are told apart, and the rest is the suite's."""


class Account:
    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def spent(self, what: str) -> Iterator[None]:
        """Book the seconds that the block takes under `what`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._seconds[what] += time.monotonic() - start

    def add(self, what: str, seconds: float) -> None:
        """Book seconds that somebody else has measured: a part of what is booked already."""
        self._seconds[what] += seconds

    def seconds(self) -> dict[str, float]:
        return {"total": time.monotonic() - self._begun, **self._seconds}


def describe_seconds(seconds: Mapping[str, float]) -> str:
    """A run's wall time in a sentence: what its trials spent, and what imports and the suite itself added to it."""
    own = sum(seconds.get(what, 0.0) for what in TRIALS_OWN)
    imports, total = seconds.get("import", 0.0), seconds["total"]
    parts = ", ".join(f"{what} {seconds.get(what, 0.0):.0f} s" for what in TRIALS_OWN)
    added = f", which is {(total - own) / own:.0%} of theirs" if own else ""
    return (
        f"{total:.0f} s in all: {parts}; added by imports {imports:.0f} s and by the suite "
        f"{total - own - imports:.1f} s{added}"
    )
