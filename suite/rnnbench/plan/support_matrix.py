"""The support matrix: the answers of every backend for each strategy and a model of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import get_args

from rnnbench.backends import AdapterError, Probe, Request, Support, names
from rnnbench.cases import Precision, State, Strategy, Target
from rnnbench.plan.adapters import begin, probe_or_stand_in, supports
from rnnbench.rnn import Model, Weights

TIMES = ("fused", "looped", "unrolled", "unrolled:2")
STATES: tuple[State, ...] = get_args(State)
MODELS: Mapping[str, Model] = {
    "lstm": Model(cell="lstm", input=64, hidden=128),
    "gru": Model(cell="gru", input=64, hidden=128),
    "gru, reset before": Model(cell="gru", input=64, hidden=128, reset_after=False),
    "rnn": Model(cell="rnn", input=64, hidden=128),
    "counter": Model(cell="counter", input=64, hidden=64),
    "lstm, 2 layers": Model(cell="lstm", input=64, hidden=128, layers=2),
    "lstm, projection": Model(cell="lstm", input=64, hidden=128, projection=32),
    "lstm, cell clip": Model(cell="lstm", input=64, hidden=128, cell_clip=3.0),
    "lstm, bidirectional": Model(cell="lstm", input=64, hidden=128, direction="bidirectional"),
}
"""A model of each kind. All others are compared with the first one."""
CHUNK = 4
STRATEGIES = tuple(Strategy(time, state, CHUNK) for time, state in product(TIMES, STATES))


@dataclass(frozen=True)
class SupportMatrix:
    """The probes of all backends, and their support of each model and strategy."""

    probes: Mapping[str, Probe]
    """The probe of each backend, by name."""
    support: Mapping[tuple[Target, str, str], Support]
    """By target, kind of model and strategy (`time-state`). Streams of bidirectional models are left out: no case has
    them."""

    @property
    def targets(self) -> list[Target]:
        return list(dict.fromkeys(target for target, _, _ in self.support))


def build_support_matrix() -> SupportMatrix:
    """The answers of every backend that has an entry point. Imports no framework."""
    begin(names())
    probes = {name: probe_or_stand_in(name) for name in names()}
    return SupportMatrix(probes, dict(_answers(probes)))


def _answers(probes: Mapping[str, Probe]) -> Iterator[tuple[tuple[Target, str, str], Support]]:
    for name, probe in probes.items():
        requests = {
            (Target(name, route), kind, str(strategy)): Request(
                route, model, Weights(()), strategy, batch=1, precision=Precision.of("float32")
            )
            for route, (kind, model), strategy in product(probe.routes, MODELS.items(), STRATEGIES)
            if model.can_stream or strategy.state == "none"
        }
        try:
            answers = supports(name, list(requests.values()))
        except AdapterError as error:
            answers = [error] * len(requests)
        yield from zip(requests, map(_shown, answers), strict=True)


def _shown(answer: Support | AdapterError) -> Support:
    return Support("unsupported", str(answer)) if isinstance(answer, AdapterError) else answer
