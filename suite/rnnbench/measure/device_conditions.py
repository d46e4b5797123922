"""The conditions of a device around a block of calls: clock, throttling, temperature, power, and other processes."""

from __future__ import annotations

from dataclasses import dataclass

CLOCK_MOVED = 0.02
"""A block is marked if the device's clock changes by more than this share from before the block to after it. NVIDIA's
GPUs change their clock in steps of 15 MHz, which is 0.8 % at 1,980 MHz."""


@dataclass(frozen=True)
class DeviceConditions:
    """A device at one moment, as its driver reports it. None means that the driver does not report it."""

    clock: float | None = None
    """The clock of its multiprocessors, in Hz."""
    throttled: tuple[str, ...] = ()
    """The reasons why its clock is held down, a few words each. Being idle is no reason."""
    temperature: float | None = None
    """In °C."""
    power: float | None = None
    """In W."""
    others: tuple[str, ...] = ()
    """Processes on the device that do not belong to this suite, as `name (PID)`."""
    hidden: int = 0
    """The number of processes on the device that cannot be seen. In a container they may be the suite's own."""


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
        """Whether the block is marked: the clock moved or was held down, or another process was on the device."""
        return self.clock_moved or bool(self.throttled) or bool(self.others)
