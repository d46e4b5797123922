"""The first stage: what can be said of a trial without running anything, and the request that its backend gets."""

from __future__ import annotations

from functools import cache

from rnnbench.backends import BackendError, Probe, Request, Support, find, support
from rnnbench.cases import Precision, Trial
from rnnbench.rnn import Weights
from rnnbench.stages import Examined, Failure, Stage


def examine(trial: Trial) -> Examined:
    """Whether a trial's backend is here and supports it. Imports no framework."""
    stage: Stage = "probe"
    probe = Probe((trial.target.route,))
    try:
        probe = _probe(trial.target.backend)
        stage = "support"
        answer = support(trial.target.backend, request_of(trial, Weights(())))
    except BackendError as error:
        unsupported = Support("unsupported", str(error))
        return Examined(trial, probe, unsupported, Failure(stage, "run-failed", str(error)))
    failure = None
    if answer.level == "unsupported":
        failure = Failure("support", "unsupported", answer.reason)
    elif lack := probe.lack(trial.target.route):
        failure = Failure("probe", "unavailable", f"{lack.reason}; install it with: {lack.install}")
    return Examined(trial, probe, answer, failure)


def request_of(trial: Trial, weights: Weights) -> Request:
    """What a backend is asked to build for a trial."""
    return Request(
        route=trial.target.route,
        model=trial.model,
        weights=weights,
        strategy=trial.strategy,
        batch=trial.batch,
        precision=Precision.of(trial.dtype),
        device=trial.device,
        threads=trial.threads,
        ragged=trial.lengths == "ragged",
    )


@cache
def _probe(backend: str) -> Probe:
    return find(backend).probe()
