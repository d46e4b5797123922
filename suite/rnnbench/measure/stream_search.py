"""The search for the number of real-time streams that a core holds: it doubles the number, and then bisects.

A number of streams is held if at most 1 % of its frames miss their deadline. The p99 of a frame's latency is then
within the period. The search only chooses numbers; `sampling.scenarios` makes the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FRAMES = 300
"""Frames of a full test. Its p99 is the fourth longest."""
QUICK_FRAMES = 32
"""Frames of a quick test, which only finds where to look. No result depends on it."""
MISSED_SHARE = 0.01
"""The largest share of frames that may miss their deadline."""
MOST_STREAMS = 4_096


@dataclass(frozen=True)
class Attempt:
    """A test of a number of streams, with a number of frames."""

    streams: int
    frames: int


def most_missed(frames: int) -> int:
    """How many of `frames` frames may miss their deadline. In a quick test it is one."""
    return int(frames * MISSED_SHARE) if frames >= FRAMES else 1


class StreamSearch:
    """The search in one process. Call `next`, make the test and call `note`, until `next` returns None."""

    def __init__(self, precision: float, start: int = 1, step: int = 1) -> None:
        """`start` is the number that an earlier process held, and `step` the first distance from it."""
        self._precision = precision
        self._quick = start == 1
        self._start = start
        self._step = step
        self._most = MOST_STREAMS
        self._held: dict[int, bool] = {}
        """For each number of streams that passed a test, whether the test was a full one."""
        self._failed: int | None = None
        """The smallest number of streams whose full test failed."""
        self._again: int | None = None
        """A number whose quick test failed, and whose full test is next."""

    @property
    def held(self) -> int:
        """The largest number of streams that passed a full test, below all numbers that failed; 0 for none."""
        return max((streams for streams, full in self._candidates.items() if full), default=0)

    @property
    def failed(self) -> int | None:
        """The smallest number of streams that failed; None if none did."""
        return self._failed

    def cannot_open(self, most: int) -> None:
        """Note that at most `most` streams can be opened."""
        self._most = min(self._most, most)

    def note(self, attempt: Attempt, held: bool) -> None:
        """Note the result of a test."""
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
        """The entries of `_held` below the smallest number that failed."""
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
        """The next number if none is held so far: further and further below the smallest number that failed."""
        assert self._failed is not None, "only below a failure"
        streams = max(1, self._failed - self._step)
        self._step *= 2
        return streams
