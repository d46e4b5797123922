"""Finds backends by entry point (`rnnbench.backends`), and the targets that a user names: `iree,tvm:relax,numpy:*`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from rnnbench.backends.answers import AdapterError, BackendError, CheckedBackend
from rnnbench.backends.base import Backend, Probe, Program, Request, Support
from rnnbench.backends.shared import support_of
from rnnbench.backends.timing_tool import NoToolError, Tool
from rnnbench.cases import Target
from rnnbench.outside_text import describe_error

__all__ = ["BackendError", "baselines", "find", "names", "probe_or_stand_in", "support", "targets", "tool_for"]

GROUP = "rnnbench.backends"


STAND_IN = Probe(routes=("default",))
"""For the probe of an adapter that fails to answer. Each of its trials then is `run-failed`, and says why."""


@cache
def find(name: str) -> Backend:
    """The backend of that name. Raises BackendError."""
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            try:
                return CheckedBackend(name, cast("Callable[[], Backend]", entry.load())())
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                what = f"backend '{name}' ({entry.value}) cannot be loaded: {describe_error(error)}"
                raise BackendError(f"{what}; repair or uninstall the package that provides it") from error
    raise BackendError(f"unknown backend '{name}'{_nearest(name, names())}")


def support(backend: str, request: Request) -> Support:
    """Whether the backend can do what is requested: its adapter's answer, after what is refused of all backends.

    Raises BackendError where the adapter fails to answer.
    """
    adapter = find(backend)
    try:
        return support_of(adapter, request, _devices(backend))
    except BackendError:
        raise
    except Exception as error:
        raise AdapterError(f"the adapter of '{backend}' failed to answer: {describe_error(error)}") from error


def probe_or_stand_in(backend: str) -> Probe:
    """What the adapter says is installed; `STAND_IN` where it fails to answer. Raises BackendError."""
    try:
        return find(backend).probe()
    except AdapterError:
        return STAND_IN


def tool_for(backend: str, program: Program, request: Request, cache: Path) -> Tool:
    """The runtime's own tool to time a program that the backend built into `cache`. Raises NoToolError."""
    adapter = next(entry.module for entry in entry_points(group=GROUP) if entry.name == backend)
    try:
        has_tool = find_spec(f"{adapter}.timing_tool") is not None
    except ModuleNotFoundError:
        has_tool = False  # The adapter is a single module.
    if not has_tool:
        raise NoToolError(f"no tool of the runtime of '{backend}' is known")
    module: Any = import_module(f"{adapter}.timing_tool")
    return cast("Callable[[Program, Request, Path], Tool]", module.own_tool)(program, request, cache)


def names() -> list[str]:
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def targets(requested: Iterable[str]) -> list[Target]:
    """Targets for each `name`, `name:route` or `name:*`, in the order given and without repeats."""
    chosen: dict[Target, None] = {}
    for text in requested:
        name, _, route = text.strip().partition(":")
        probe = probe_or_stand_in(name)
        routes = probe.routes
        if probe is STAND_IN:
            chosen[Target(name, routes[0] if route in ("", "*") else route)] = None
        elif route == "*":
            chosen.update(dict.fromkeys(Target(name, r) for r in routes))
        elif route in ("", *routes):
            chosen[Target(name, route or routes[0])] = None
        else:
            raise BackendError(f"unknown route '{name}:{route}'{_nearest(route, routes)}")
    return list(chosen)


def baselines() -> list[Target]:
    """The default route of each backend that declares itself a baseline. A backend that cannot be loaded is none."""
    declared = []
    for name in names():
        try:
            probe = find(name).probe()
        except BackendError:
            continue
        if probe.baseline:
            declared.append(Target(name, probe.routes[0]))
    return declared


@cache
def _devices(backend: str) -> tuple[str, ...]:
    """Kept, because they are needed for each trial of a case and a probe takes 1 to 3 ms."""
    return find(backend).probe().devices


def _nearest(word: str, candidates: Iterable[str]) -> str:
    candidates = list(candidates)
    close = difflib.get_close_matches(word, candidates, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(candidates)}"
