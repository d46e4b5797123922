"""The targets that a user names: `iree,tvm:relax,numpy:*`. Without names, those of the installed backends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rnnbench.backends import AdapterError, BackendError, Probe, names
from rnnbench.cases import Target
from rnnbench.plan.adapters import STAND_IN, begin, probe, probe_or_stand_in
from rnnbench.spelling import hint


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
    - `reading`: formats of model files, as in `parse_targets`.
    """
    if not backends:
        return parse_targets(names() if everywhere else installed_backends(), reading=reading)
    chosen = parse_targets(backends, reading=reading)
    for target in chosen if installed else ():
        if lack := probe_or_stand_in(target.backend).lack(target.route):
            raise BackendError(f"{target} is not available: {lack.message}")
    return list(dict.fromkeys([*(baselines() if baseline else []), *chosen]))


def installed_backends() -> list[str]:
    """The names of the backends whose probe says that they are installed."""
    begin(names())
    return [name for name in names() if probe_or_stand_in(name).available]


def parse_targets(requested: Iterable[str], *, reading: Iterable[str] = ()) -> list[Target]:
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
