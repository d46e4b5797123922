"""What a device did around a block of calls: its clock, throttling, temperature, power, and who else used it."""

from __future__ import annotations

from dataclasses import dataclass

CLOCK_MOVED = 0.02
"""Relative change of a device's clock from before a block to after it, above which the block is marked. NVIDIA's GPUs
change their clock in steps of 15 MHz, which is 0.8 % at 1,980 MHz."""


@dataclass(frozen=True)
class DeviceConditions:
    """A device at one moment, as its driver tells it. None: the driver does not tell."""

    clock: float | None = None
    """Of its multiprocessors, in Hz."""
    throttled: tuple[str, ...] = ()
    """Why its clock is held down, a few words each. Being idle is no reason."""
    temperature: float | None = None
    """In °C."""
    power: float | None = None
    """In W."""
    others: tuple[str, ...] = ()
    """Processes on it that are not of this suite, as `name (PID)`."""
    hidden: int = 0
    """Processes on it that cannot be seen from here. They may be the suite's own, where it runs in a container."""


@dataclass(frozen=True)
class DeviceSpell:
    """A device before and after a block of calls."""

    before: DeviceConditions
    after: DeviceConditions

    @property
    def clock_moved(self) -> bool:
        first, last = self.before.clock, self.after.clock
        return first is not None and last is not None and abs(last - first) > CLOCK_MOVED * first

    @property
    def throttled(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.before.throttled, *self.after.throttled)))

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.before.others, *self.after.others)))

    @property
    def disturbs(self) -> bool:
        """Whether a block is marked: the clock moved, it was held down, or another process was on the device."""
        return self.clock_moved or bool(self.throttled) or bool(self.others)
