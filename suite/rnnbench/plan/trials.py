"""From cases and names of backends to trials, for the command line, pytest and Python alike."""

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
    """The targets that `backends` name, as `name`, `name:route` or `name:*`.

    Where none is named: the default route of every installed backend; with `everywhere`, of every backend, so that
    machines agree that have others installed. With `baseline`, the baseline's targets come first. Unless `installed` is
    false, each target that is named must be installed here. With `reading`, a name alone is, for each of
    these formats of model files, the first of the backend's routes that reads it. Raises BackendError.
    """
    if not backends:
        return targets(names() if everywhere else installed_backends(), reading=reading)
    chosen = targets(backends, reading=reading)
    for target in chosen if installed else ():
        if lack := probe_or_stand_in(target.backend).lack(target.route):
            raise BackendError(f"{target} is not available: {lack.reason}; install it with: {lack.install}")
    return list(dict.fromkeys([*(baselines() if baseline else []), *chosen]))


def require_devices(trials: Iterable[Trial]) -> None:
    """Raises BackendError if a device that trials of a named backend run on is not here. It says what is missing."""
    for backend, device in dict.fromkeys((trial.target.backend, trial.device) for trial in trials):
        if lack := probe_or_stand_in(backend).device_lack(device):
            reason = f"{backend} is not available on {device}: {lack.reason}; install it with: {lack.install}"
            raise BackendError(reason)


def device_of_backends(kind: str) -> Device | str:
    """The device of this kind that a backend found on this machine, or why none did."""
    lacks = []
    for name in installed_backends():
        found = probe_or_stand_in(name).devices.get(kind)
        if isinstance(found, Device):
            return found
        lacks += [f"{name}: {found.reason}"] if found else []
    return "; ".join(lacks) or "no installed backend has programs for it"


def installed_backends() -> list[str]:
    begin(names())
    return [name for name in names() if probe_or_stand_in(name).available]


def check_case_names(cases: Iterable[Case]) -> None:
    """Raises CaseError if two cases have the same name: their trials would have the same ids."""
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
    """The expected failures of the trials' backends by case, from `file` or each case's own. Raises CaseError."""
    backends = sorted({trial.target.backend for trial in trials})
    probes = {backend: probe_or_stand_in(backend) for backend in backends}
    return expected_failures_for(cases, probes, CHECKS_BY_NAME, file)
