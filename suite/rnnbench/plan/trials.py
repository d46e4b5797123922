"""Trials before they are planned: their devices, the names of their cases, and their expected failures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rnnbench.backends import BackendError, names
from rnnbench.cases import Case, CaseError, ExpectedFailure, Place, Trial, expected_failures_for
from rnnbench.conformance import CHECKS_BY_NAME
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


def check_case_names(cases: Iterable[Case]) -> None:
    """Raise CaseError if two cases have the same name: their trials would have the same ids."""
    places: dict[str, str] = {}
    for case in cases:
        place = case.path or "a case made in Python"
        if (other := places.setdefault(case.name, place)) != place:
            raise CaseError.at(
                Place(place), f"{other} has the same name, '{case.name}', so their trials would have the same ids"
            )


def expected_failures(
    cases: Iterable[Case], trials: Iterable[Trial], file: Path | None = None
) -> dict[str, tuple[ExpectedFailure, ...]]:
    """The expected failures of the trials' backends, by case. They come from `file`, or from each case's own file.

    Raises CaseError.
    """
    backends = sorted({trial.target.backend for trial in trials})
    probes = {backend: probe_or_stand_in(backend) for backend in backends}
    return expected_failures_for(cases, probes, CHECKS_BY_NAME, file, names=names())
