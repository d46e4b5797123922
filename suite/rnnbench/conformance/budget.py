"""How far a check with a time of its own came: counted while it runs, and said in its result.

The figures of such a result have three names, whatever is counted: `done`, `planned` and `least`. `rnnbench check`
prints where `done` is below `planned`, and where it is below `least`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from rnnbench.cases import Limits
from rnnbench.results import CheckResult


def planned_turns(limits: Limits, most: int, enough: int) -> int:
    """`most` turns, or `enough` where the case says what time is enough: the faults that are known show in so many."""
    return most if limits.enough is None else min(most, enough)


@dataclass
class Budget:
    """An iterator over at most `planned` turns, which ends when `seconds` are over, but not before a first `FIRST`."""

    what: str
    """What is counted, in the plural: `calls`."""
    planned: int
    least: int
    """With fewer, a pass means nothing: the faults that are looked for show later."""
    seconds: float
    done: int = 0
    enough: float | None = None
    """Seconds after which it ends once it has `least` turns. None: it has all of `seconds`."""

    def __iter__(self) -> Iterator[int]:
        begun = time.perf_counter()
        while self.done < self.planned and (self.done < FIRST or time.perf_counter() - begun < self.time()):
            self.done += 1
            yield self.done - 1

    def time(self) -> float:
        """The seconds that it has with the turns that were made."""
        return self.seconds if self.enough is None or self.done < self.least else min(self.enough, self.seconds)

    def result(self, result: CheckResult) -> CheckResult:
        """The result with how far it came. The detail of a failure stays as it is, and a pass of too few is none."""
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
"""How many times its time a short check may take, until it has its least number of turns."""
FIRST = 9
"""Turns that are always made, however slow the program is: one more than the ring has chunks."""
