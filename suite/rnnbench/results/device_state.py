"""What a device did while a trial was sampled: its state around blocks, and where its energy was read."""

from __future__ import annotations

from rnnbench.outside_text import OutsideText
from rnnbench.results.model import FrozenModel


class DeviceState(FrozenModel):
    """Readings of the device's driver around the sampled blocks: the least and the greatest, None where it has none."""

    clock: tuple[float, float] | None = None
    """In Hz, of its multiprocessors."""
    temperature: tuple[float, float] | None = None
    """In °C."""
    power: tuple[float, float] | None = None
    """In W."""
    moved_blocks: int = 0
    """Blocks from whose beginning to whose end the clock changed."""
    throttled: tuple[str, ...] = ()
    """Why the clock was held down."""
    throttled_blocks: int = 0
    others: tuple[OutsideText, ...] = ()
    """Processes that are not of the suite, with their PIDs."""
    shared_blocks: int = 0
    """Blocks during which there were such processes."""


class EnergyReading(FrozenModel):
    """The blocks of calls whose energy was read, one a process."""

    source: OutsideText
    """The counter, and what it counts."""
    blocks: int
    disturbed_blocks: int
    """Blocks during which other processes used the core or the device: the energy is theirs too."""
