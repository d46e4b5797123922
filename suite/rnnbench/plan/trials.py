"""The targets, devices and expected failures of trials, for the command line, pytest and Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rnnbench.backends import BackendError, names
from rnnbench.cases import Case, CaseError, ExpectedFailure, Place, Target, Trial, expected_failures_for
from rnnbench.conformance import CHECKS_BY_NAME
from rnnbench.devices import Device
from rnnbench.plan.adapters import begin, probe_or_stand_in
from rnnbench.plan.named_targets import baselines, targets


def targets_of(
    backends: Sequence[str],
    *,
    baseline: bool = False,
    installed: bool = True,
    everywhere: bool = False,
    reading: Iterable[str] = (),
) -> list[Target]:
    """The targets that `backends` name, as `name`, `name:route` or `name:*`. Raises BackendError.

    - No names: the default route of every installed backend. With `everywhere`, of every backend, so that machines with
      different backends agree.
    - `baseline`: the baseline's targets come first.
    - `installed`: each named target must be installed here.
    - `reading`: formats of model files, as in `targets`.
    """
    if not backends:
        return targets(names() if everywhere else installed_backends(), reading=reading)
    chosen = targets(backends, reading=reading)
    for target in chosen if installed else ():
        if lack := probe_or_stand_in(target.backend).lack(target.route):
            raise BackendError(f"{target} is not available: {lack.message}")
    return list(dict.fromkeys([*(baselines() if baseline else []), *chosen]))


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


def installed_backends() -> list[str]:
    begin(names())
    return [name for name in names() if probe_or_stand_in(name).available]


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
