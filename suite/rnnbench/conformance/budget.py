"""The budget of a check with a time limit: how many turns it makes, and how many it made.

The figures of its result are `done`, `planned` and `least`, whatever is counted. `rnnbench check` says if `done` is
below `planned`, and if it is below `least`.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rnnbench.cases import Limits, Trial
from rnnbench.results import CheckResult


def planned_turns(limits: Limits, most: int, enough: int) -> int:
    """`most` turns, or `enough` if the case has `limits.enough`: all known faults show within `enough` turns."""
    return most if limits.enough is None else min(most, enough)


def drawn_for(trial: Trial) -> np.random.Generator:
    """Random numbers of this trial: those of another one of the same seed are others, so more of them are tried."""
    return np.random.default_rng([trial.seed, zlib.crc32(trial.id.encode())])


@dataclass
class Budget:
    """An iterator over at most `planned` turns. It ends after `seconds`, but not before FIRST turns."""

    what: str
    """The noun of the turns, in the plural: `calls`."""
    planned: int
    least: int
    """With fewer turns a pass means nothing: faults show later."""
    seconds: float
    done: int = 0
    enough: float | None = None
    """Seconds after which it ends if it has `least` turns; None means `seconds`."""

    def __iter__(self) -> Iterator[int]:
        begun = time.perf_counter()
        while self.done < self.planned and (self.done < FIRST or time.perf_counter() - begun < self.time()):
            self.done += 1
            yield self.done - 1

    def time(self) -> float:
        """The seconds after which it ends, given the turns made so far."""
        return self.seconds if self.enough is None or self.done < self.least else min(self.enough, self.seconds)

    def result(self, result: CheckResult) -> CheckResult:
        """The result with the numbers of turns. A pass of fewer than `least` turns becomes `too-short`."""
        figures = {"done": float(self.done), "planned": float(self.planned), "least": float(self.least)}
        verdict = "too-short" if result.verdict == "pass" and self.done < self.least else result.verdict
        update = {
            "verdict": verdict,
            "detail": result.detail or self.sentence(),
            "figures": {**result.figures, **figures},
        }
        return result.model_copy(update=update)

    def sentence(self) -> str:
        if self.done >= self.planned:
            return f"{self.done:,} {self.what}"
        short = f"; below {self.least:,} a pass means nothing" if self.done < self.least else ""
        return f"{self.done:,} of {self.planned:,} {self.what} in its {self.time():g} s{short}"


GOES_ON = 10
"""A short check may take this many times its seconds to reach its least number of turns."""
FIRST = 9
"""Turns that are always made, even by a slow program: one more than the ring has chunks."""
