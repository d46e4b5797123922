"""The targets that a user names: `iree,tvm:relax,numpy:*`."""

from __future__ import annotations

from collections.abc import Iterable

from rnnbench.backends import AdapterError, BackendError, Probe, names
from rnnbench.cases import Target
from rnnbench.plan.adapters import STAND_IN, begin, probe, probe_or_stand_in
from rnnbench.spelling import hint


def targets(requested: Iterable[str], *, reading: Iterable[str] = ()) -> list[Target]:
    """The targets of each `name`, `name:route` or `name:*`, in the order given, without repeats. Raises BackendError.

    A name alone means the backend's default route. With `reading`, it means for each of these formats of model files
    the first route that reads the format, if there is one.
    """
    formats, chosen = sorted(reading), dict[Target, None]()
    for text in requested:
        name, colon, route = text.strip().partition(":")
        answer = probe_or_stand_in(name)
        routes = answer.routes
        if colon and not route:
            raise BackendError(f"'{text}' names no route; expected {name}, {name}:* or {name}:{routes[0]}")
        if answer is STAND_IN:
            chosen[Target(name, routes[0] if route in ("", "*") else route)] = None
        elif route == "*":
            chosen.update(dict.fromkeys(Target(name, r) for r in routes))
        elif route in ("", *routes):
            readers = () if route else _readers(answer, formats)
            chosen.update(dict.fromkeys(Target(name, r) for r in readers or (route or routes[0],)))
        else:
            raise BackendError(f"unknown route '{name}:{route}'; {hint(route, routes)}")
    return list(chosen)


def _readers(answer: Probe, formats: Iterable[str]) -> list[str]:
    """The first route that reads each format, without repeats."""
    reading = ([route for route in answer.routes if name in answer.reads.get(route, ())][:1] for name in formats)
    return list(dict.fromkeys(route for first in reading for route in first))


def baselines() -> list[Target]:
    """The default route of each backend that declares itself a baseline. A backend that fails to answer is left out."""
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
