"""The energy of a block of calls, from a device's counter of joules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

ENERGY_SAMPLES = 10_000
"""The most samples of a block whose energy is measured. Such a block is long, and only the number of its calls counts.
"""


class EnergyCounter(Protocol):
    """A device's energy counter that can be read."""

    @property
    def source(self) -> str:
        """The counter and what it measures: `RAPL: package-0`."""
        ...

    @property
    def block_s(self) -> float:
        """Seconds of a block that is much longer than the interval between two updates of the counter."""
        ...

    def read(self) -> float:
        """Joules since the counter was opened."""
        ...


@dataclass(frozen=True)
class EnergyUse:
    """The energy that the whole device used during a block of calls, including what it uses at rest."""

    joules: float
    seconds: float
    """Between the two readings."""
    calls: int
    source: str = ""
    """The counter (`EnergyCounter.source`)."""
    disturbed: bool = False
    """Whether the block was disturbed. The device then also worked for other programs, or waited."""

    def per_step(self, chunk: int) -> float:
        """Joules per time step of calls of `chunk` steps. All streams of a batch advance together in a step."""
        return self.joules / (self.calls * chunk)

    @property
    def power(self) -> float:
        """In W."""
        return self.joules / self.seconds
