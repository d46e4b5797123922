"""Energy of a block of calls, by a counter of joules that a device keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

ENERGY_SAMPLES = 10_000
"""Most samples of a block of calls whose energy is read: such a block is long, and only its calls count."""


class EnergyCounter(Protocol):
    """A device's counter of energy, once it is known to be readable."""

    @property
    def source(self) -> str:
        """What counts, and what of: `RAPL: package-0`."""
        ...

    @property
    def block_s(self) -> float:
        """Seconds of a block that is long against the steps in which it counts."""
        ...

    def read(self) -> float:
        """Joules since the counter was opened."""
        ...


@dataclass(frozen=True)
class EnergyUse:
    """What the device used while a block of calls ran: all of it, what it uses at rest included."""

    joules: float
    seconds: float
    """Between the two readings."""
    calls: int
    source: str = ""
    """What counted it."""
    disturbed: bool = False
    """Whether the block was disturbed. The device then also worked, or waited, for others."""

    def per_step(self, chunk: int) -> float:
        """Joules per time step of calls of `chunk` steps. All streams of a batch advance in it together."""
        return self.joules / (self.calls * chunk)

    @property
    def power(self) -> float:
        """In W."""
        return self.joules / self.seconds
