"""The devices that trials need, and those that the installed backends find."""

from __future__ import annotations

from collections.abc import Iterable

from rnnbench.backends import BackendError
from rnnbench.cases import Trial
from rnnbench.devices import Device
from rnnbench.plan.adapters import probe_or_stand_in
from rnnbench.plan.named_targets import installed_backends


def require_devices(trials: Iterable[Trial]) -> None:
    """Raise BackendError if a device that a trial runs on is not available here. The message says what is missing."""
    for backend, device in dict.fromkeys((trial.target.backend, trial.device) for trial in trials):
        if lack := probe_or_stand_in(backend).device_lack(device):
            reason = f"{backend} is not available on {device}: {lack.message}"
            raise BackendError(reason)


def device_of_backends(kind: str) -> Device | str:
    """The device of this kind that a backend found on this machine, or the reasons why none found one."""
    lacks = []
    for name in installed_backends():
        device = probe_or_stand_in(name).devices.get(kind)
        if isinstance(device, Device):
            return device
        lacks += [f"{name}: {device.reason}"] if device else []
    return "; ".join(lacks) or "no installed backend has programs for it"
