"""Small trials for tests of the harness."""

from __future__ import annotations

from rnnbench.cases.trial import Limits, Measure, State, Strategy, Target, Trial
from rnnbench.rnn.spec import Model


def make_trial(
    target: str = "fake:honest",
    time: str = "looped",
    state: State = "stitched",
    chunk: int = 4,
    measure: Measure = Measure(budget=0.05, processes=1),  # noqa: B008 frozen
    limits: Limits = Limits(),  # noqa: B008 frozen
) -> Trial:
    backend, route = target.split(":")
    return Trial(
        case="harness",
        target=Target(backend, route),
        model=Model(cell="lstm", input=3, hidden=4),
        strategy=Strategy(time, state, chunk),
        steps=12,
        batch=1,
        dtype="float32",
        device="cpu",
        threads=1,
        seed=0,
        limits=limits,
        measure=measure,
    )
