"""The first stage: ask a trial's adapter whether it is installed and supports the trial. Nothing is run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rnnbench.backends import AdapterError, BackendError, Probe, Support, request_of
from rnnbench.cases import Trial
from rnnbench.plan.adapters import probe, supports
from rnnbench.rnn import Weights
from rnnbench.stages import Examined, Failure, Stage

PINNED_HINT = "`rnnbench run` on one machine and `rnnbench night` make an environment with them"


def examine(trial: Trial) -> Examined:
    """Examine one trial. Imports no framework."""
    (examined,) = examine_all([trial])
    return examined


def examine_all(trials: Iterable[Trial]) -> list[Examined]:
    """Examine trials, in their order. Each adapter is asked about all of its trials at once."""
    trials = list(trials)
    of_backend: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        of_backend[trial.target.backend].append(trial)
    answers = {backend: _examined(backend, asked) for backend, asked in of_backend.items()}
    return [next(answers[trial.target.backend]) for trial in trials]


def unavailable(trial: Trial, reason: str) -> Examined:
    """A trial that cannot be examined, with the reason."""
    support = Support("unsupported", reason)
    return Examined(trial, Probe((trial.target.route,)), support, Failure("probe", "unavailable", reason))


def _examined(backend: str, trials: Sequence[Trial]) -> Iterator[Examined]:
    """The trials of one backend, in their order."""
    try:
        installed = probe(backend)
    except BackendError as error:
        yield from (_unanswered(trial, Probe((trial.target.route,)), "probe", error) for trial in trials)
        return
    answers = supports(backend, [request_of(trial, Weights(())) for trial in trials])
    for trial, answer in zip(trials, answers, strict=True):
        if isinstance(answer, AdapterError):
            yield _unanswered(trial, installed, "support", answer)
        else:
            yield Examined(trial, installed, answer, _failure(trial, installed, answer))


def _failure(trial: Trial, installed: Probe, answer: Support) -> Failure | None:
    if trial.pinned:
        return Failure("probe", "unavailable", f"its versions are pinned ({trial.pinned}); {PINNED_HINT}")
    if answer.level == "unsupported":
        return Failure("support", "unsupported", answer.reason)
    if lack := installed.lack(trial.target.route) or installed.device_lack(trial.device):
        return Failure("probe", "unavailable", lack.message)
    return None


def _unanswered(trial: Trial, installed: Probe, stage: Stage, error: BackendError) -> Examined:
    outcome = error.outcome if isinstance(error, AdapterError) else "run-failed"
    return Examined(trial, installed, Support("unsupported", str(error)), Failure(stage, outcome, str(error)))
