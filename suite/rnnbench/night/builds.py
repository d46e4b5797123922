"""The newest version of each backend, and whether it has to be compared with the last good one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rnnbench.night.state import BackendNight, Build, State
from rnnbench.pipeline import Release, SideError, newest_release, released_package
from rnnbench.plan import probe_or_stand_in

ALL = "all"
"""Stands for all backends, in place of their names."""
UNCHANGED = "unchanged"
"""The job of all backends without a new version."""


@dataclass(frozen=True)
class VersionSearch:
    """Which versions count as the newest."""

    upgrade: bool = True
    """Whether to ask the package index. Otherwise the installed version counts as the newest."""
    pre: frozenset[str] = frozenset()
    """Backends whose pre-releases count too, or `ALL`."""


def newest_of(backends: Sequence[str], search: VersionSearch) -> dict[str, BackendNight]:
    """The newest version of each backend. A backend whose version is unknown has a problem instead."""
    return {backend: _newest(backend, search) for backend in backends}


def has_changed(backend: str, newest: Build | None, state: State) -> bool:
    """Whether the newest version has to be compared with the last good one."""
    return backend in state.good and is_new(backend, newest, state)


def is_new(backend: str, newest: Build | None, state: State) -> bool:
    """Whether the newest version has to be judged: it is not the last good one, and no alert holds it back yet."""
    good, held = state.good.get(backend), state.held.get(backend)
    if newest is None or (good is not None and newest.version == good.version):
        return False
    return held is None or held.version != newest.version or not held.alerts


def checks_of(builds: Mapping[str, BackendNight], state: State) -> list[dict[str, str]]:
    """The checks of a night on several machines: each new version, with the requirements of its environment."""
    return [
        {"backend": backend, "requirements": one.newest.requirements}
        for backend, one in builds.items()
        if one.newest is not None and one.package and is_new(backend, one.newest, state)
    ]


def jobs_of(builds: Mapping[str, BackendNight], state: State) -> list[dict[str, str]]:
    """The jobs of a night on several machines: one for each changed backend, and one for all others."""
    changed = [backend for backend, one in builds.items() if has_changed(backend, one.newest, state)]
    others = [backend for backend, one in builds.items() if backend not in changed and one.package]
    jobs = [{"name": backend, "backends": backend} for backend in changed]
    return [*jobs, *([{"name": UNCHANGED, "backends": ",".join(others)}] if others else [])]


def _newest(backend: str, search: VersionSearch) -> BackendNight:
    if probe_or_stand_in(backend).baseline:  # Its trials are anchors, whose versions do not change.
        return BackendNight()
    package = ""
    try:
        package = released_package(backend)
        if search.upgrade:
            release = newest_release(package, pre=bool({backend, ALL} & search.pre))
        else:
            release = Release(package, installed_version(backend, package))
        return BackendNight(package=package, newest=Build(version=release.version, requirements=release.requirements))
    except SideError as error:
        return BackendNight(package=package, problem=str(error))


def installed_version(backend: str, package: str) -> str:
    """The version in the running environment; empty if it is not installed there."""
    return probe_or_stand_in(backend).versions.get(package, "")
