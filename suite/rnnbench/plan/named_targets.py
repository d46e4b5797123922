"""The targets that a user names: `iree,tvm:relax,numpy:*`."""

from __future__ import annotations

from collections.abc import Iterable

from rnnbench.backends import AdapterError, BackendError, names, nearest
from rnnbench.cases import Target
from rnnbench.plan.adapters import STAND_IN, begin, probe, probe_or_stand_in


def targets(requested: Iterable[str], *, reading: bool = False) -> list[Target]:
    """Targets for each `name`, `name:route` or `name:*`, in the order given, without repeats. Raises BackendError.

    A name alone is the backend's default route; with `reading`, the first of its routes that reads model files.
    """
    chosen: dict[Target, None] = {}
    for text in requested:
        name, _, route = text.strip().partition(":")
        answer = probe_or_stand_in(name)
        routes = answer.routes
        if answer is STAND_IN:
            chosen[Target(name, routes[0] if route in ("", "*") else route)] = None
        elif route == "*":
            chosen.update(dict.fromkeys(Target(name, r) for r in routes))
        elif route in ("", *routes):
            readers = [one for one in routes if one in answer.reads] if reading else []
            chosen[Target(name, route or (readers or routes)[0])] = None
        else:
            raise BackendError(f"unknown route '{name}:{route}'{nearest(route, routes)}")
    return list(chosen)


def baselines() -> list[Target]:
    """The default route of each backend that declares itself a baseline. One that fails to answer is none."""
    declared = []
    begin(names())
    for name in names():
        try:
            answer = probe(name)
        except AdapterError:
            continue
        if answer.baseline:
            declared.append(Target(name, answer.routes[0]))
    return declared
