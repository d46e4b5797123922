"""A backend's probe, from the metadata of the packages that it needs. Imports none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from rnnbench.backends.base import Lack, Probe

NO_ROUTES: Mapping[str, Sequence[str]] = {}
NO_COMPILERS: Mapping[str, str] = {}


def probe_packages(
    routes: Sequence[str],
    packages: Sequence[str],
    install: str,
    by_route: Mapping[str, Sequence[str]] = NO_ROUTES,
    slow: tuple[str, ...] = (),
    compilers: Mapping[str, str] = NO_COMPILERS,
) -> Probe:
    """The versions of `packages`; or the name of the first one that is missing, and the command that installs them all.

    `by_route` names the further packages that single routes need. `slow` and `compilers` are those of the Probe.
    """
    versions, missing = _versions(packages)
    if missing:
        return Probe(tuple(routes), versions, f"{missing} is not installed", install)
    lacking = {}
    for route, further in by_route.items():
        further_versions, missing = _versions(further)
        versions |= further_versions
        if missing:
            lacking[route] = Lack(f"{missing} is not installed", f"pip install {' '.join(further)}")
    return Probe(tuple(routes), versions, lacking=lacking, slow=slow, compilers=compilers)


def installed_versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    return _versions(packages)[0]


def _versions(packages: Sequence[str]) -> tuple[dict[str, str], str]:
    """The versions of those that are installed, and the name of the first that is not; empty where all are."""
    versions, missing = dict[str, str](), ""
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            missing = missing or package
    return versions, missing
