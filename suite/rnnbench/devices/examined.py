"""The devices of this machine, and what disturbs each now, for `rnnbench doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rnnbench.devices.device import Device, DeviceKind, UnmeasuredError
from rnnbench.devices.kinds import KINDS
from rnnbench.devices.nvml import NoGpuError
from rnnbench.measure import DeviceConditions
from rnnbench.spelling import count

HOT = 85.0
"""The temperature in °C at which GPUs are slowed down, by most makers' figures."""


@dataclass(frozen=True)
class ExaminedDevice:
    """One kind of device on this machine."""

    kind: str
    device: Device | None
    missing: str = ""
    """Why there is none."""
    conditions: DeviceConditions | None = None
    """None if its kind does not report them."""
    energy: str = ""
    """Its energy counter; empty if it has none."""
    no_energy: str = ""
    """Why it has no energy counter."""

    @property
    def warnings(self) -> Iterator[str]:
        """A sentence for each thing that disturbs it."""
        now = self.conditions
        if now is None:
            return
        if now.others:
            yield f"On the {self.kind} device run other processes: {', '.join(now.others)}. Wait until they have ended."
        if now.hidden:
            hidden = count(now.hidden, "process", "processes")
            yield f"The {self.kind} device has {hidden} that cannot be seen from here, as those of another container."
        if now.throttled:
            yield f"The clock of the {self.kind} device is held down: {', '.join(now.throttled)}."
        if (now.temperature or 0.0) > HOT:
            yield f"The {self.kind} device is at {now.temperature:.0f} °C and may be slowing down: let it cool down."


def examine_devices(ask_backends: Callable[[str], Device | str]) -> list[ExaminedDevice]:
    """Examine every kind of device. `ask_backends` returns that of a kind which only backends find, or a reason."""
    return [_examined(kind, ask_backends) for kind in KINDS.values()]


def _examined(kind: DeviceKind, ask_backends: Callable[[str], Device | str]) -> ExaminedDevice:
    try:
        device = kind.describe() if kind.describe else ask_backends(kind.name)
        if isinstance(device, str):
            return ExaminedDevice(kind.name, None, device)
        conditions = kind.conditions() if kind.conditions else None
    except NoGpuError as error:
        remedy = "" if error.says_remedy else f"; install it with: {kind.install}"
        return ExaminedDevice(kind.name, None, f"{error}{remedy}")
    except UnmeasuredError as error:
        return ExaminedDevice(kind.name, None, str(error))
    try:
        energy = kind.open_energy().source if kind.open_energy else ""
        no_energy = "" if energy else kind.unmeasured.get("energy", "")
    except UnmeasuredError as error:
        energy, no_energy = "", str(error)
    return ExaminedDevice(kind.name, device, "", conditions, energy, no_energy)
