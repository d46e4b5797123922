"""How many real-time streams are held: a search that doubles and then bisects, with a test of each number it tries.

A number of streams is held where at most 1 % of its frames miss their deadline: then the p99 of a frame's latency is
within the period. The search knows numbers only; `sampling.scenarios` makes the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FRAMES = 300
"""Frames of a test that counts. Its p99 is the fourth longest."""
QUICK_FRAMES = 32
"""Frames of a test that only finds where to look. No result rests on it."""
MISSED_SHARE = 0.01
"""Most frames that may miss their deadline."""
MOST_STREAMS = 4_096


@dataclass(frozen=True)
class Attempt:
    """A number of streams that is to be tested, with so many frames."""

    streams: int
    frames: int


def most_missed(frames: int) -> int:
    """How many of these frames may miss their deadline; one of a quick test, which is then repeated in full."""
    return int(frames * MISSED_SHARE) if frames >= FRAMES else 1


class StreamSearch:
    """The search in one process: ask `next`, test, tell `note`, until there is nothing left to test."""

    def __init__(self, precision: float, start: int = 1, step: int = 1) -> None:
        """`start` is what an earlier process held, and `step` how far from it to look first."""
        self._precision = precision
        self._quick = start == 1
        self._start = start
        self._step = step
        self._most = MOST_STREAMS
        self._held: dict[int, bool] = {}
        """By number of streams that was held: whether its test was a full one."""
        self._failed: int | None = None
        """The smallest number of streams whose full test failed."""
        self._again: int | None = None
        """A number whose quick test failed."""

    @property
    def held(self) -> int:
        """The largest number of streams that a full test has held, below all that failed; 0 for none."""
        return max((streams for streams, full in self._candidates.items() if full), default=0)

    @property
    def failed(self) -> int | None:
        """The smallest number of streams that failed; None if none did."""
        return self._failed

    def cannot_open(self, most: int) -> None:
        """No more than so many streams can be opened here."""
        self._most = min(self._most, most)

    def note(self, attempt: Attempt, held: bool) -> None:
        """What a test came to."""
        full = attempt.frames >= FRAMES
        self._again = None
        if held:
            self._held[attempt.streams] = full or self._held.get(attempt.streams, False)
        elif full:
            self._failed = attempt.streams
        else:
            self._again = attempt.streams

    def next(self) -> Attempt | None:
        """The next test; None if the search has ended."""
        if self._again is not None:
            return Attempt(self._again, FRAMES)
        if self._failed is None:
            return self._next_upwards()
        low = max(self._candidates, default=0)
        if not low and self._failed > 1:
            return Attempt(self._below(), FRAMES)
        if self._failed - low > max(1, self._precision * low):
            return Attempt((low + self._failed) // 2, FRAMES)
        return None if low == 0 or self._held[low] else Attempt(low, FRAMES)

    @property
    def _candidates(self) -> Mapping[int, bool]:
        """What was held, below the smallest number that failed."""
        return {n: full for n, full in self._held.items() if self._failed is None or n < self._failed}

    def _next_upwards(self) -> Attempt | None:
        low = max(self._held, default=0)
        if low >= self._most:
            return None if self._held[low] else Attempt(low, FRAMES)
        streams = self._start if not low else low + self._step
        if low:
            self._step *= 2
        return Attempt(min(streams, self._most), QUICK_FRAMES if self._quick else FRAMES)

    def _below(self) -> int:
        """Nothing is held so far: look further and further below the smallest number that failed."""
        assert self._failed is not None, "only below a failure"
        streams = max(1, self._failed - self._step)
        self._step *= 2
        return streams
