"""What adapters answer alike: what is installed, and what no program of any of them can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from rnnbench.backends.base import Lack, Probe, Request

NO_ROUTES: Mapping[str, Sequence[str]] = {}


def probe(
    routes: Sequence[str],
    packages: Sequence[str],
    install: str,
    by_route: Mapping[str, Sequence[str]] = NO_ROUTES,
    slow: tuple[str, ...] = (),
    shared: tuple[str, ...] = (),
) -> Probe:
    """Versions of the packages that a backend needs, by their metadata; or which is missing, and how to `install` all.

    `by_route`: what single routes need besides.
    """
    versions, missing = _versions(packages)
    if missing:
        return Probe(tuple(routes), versions, f"{missing} is not installed", install)
    lacking = {}
    for route, wanted in by_route.items():
        found, missing = _versions(wanted)
        versions |= found
        if missing:
            lacking[route] = Lack(f"{missing} is not installed", f"pip install {' '.join(wanted)}")
    return Probe(tuple(routes), versions, lacking=lacking, slow=slow, shared=shared)


def contradiction(request: Request) -> str:
    """Why no program can be what a request asks, one part of it excluding another; empty where one can."""
    strategy = request.strategy
    if request.model.direction != "forward" and strategy.state != "none":
        return "A stream cannot run backwards: such a direction needs the whole sequence, so its state is none."
    if strategy.copies and strategy.chunk % strategy.copies:
        return (
            f"A loop over {strategy.copies} copies of the cell needs a chunk that they divide, "
            f"and {strategy.chunk} is none."
        )
    return ""


def _versions(packages: Sequence[str]) -> tuple[dict[str, str], str]:
    """Of those that are installed, and the name of the first that is not; empty where all are."""
    versions, missing = dict[str, str](), ""
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            missing = missing or package
    return versions, missing
