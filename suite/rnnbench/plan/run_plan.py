"""The plan of a run: its trials, its expected failures and its seed, kept in its folder so that it can be resumed."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from rnnbench import __version__
from rnnbench.backends import probe_or_stand_in
from rnnbench.cases import ExpectedFailure, Trial
from rnnbench.measure import MachineConditions, describe_machine
from rnnbench.results import Conditions, RunInfo, Store, StoreError, read_run, write_info

T = TypeVar("T")

TRIALS = "trials.json"
EXPECTED_FAILURES = "expected_failures.json"

ExpectedFailures = Mapping[str, Sequence[ExpectedFailure]]
"""By case."""


@dataclass(frozen=True)
class RunPlan:
    """What a run is going to do."""

    folder: Path
    trials: tuple[Trial, ...]
    seed: int
    """Of the order in which trials are sampled."""
    expected_failures: ExpectedFailures = field(default_factory=dict)

    def expected_of(self, trial: Trial) -> Sequence[ExpectedFailure]:
        return self.expected_failures.get(trial.case, ())


def begin_run(
    trials: Sequence[Trial], store: Store, expected_failures: ExpectedFailures | None = None, suffix: str = ""
) -> RunPlan:
    """Make the folder of a new run, whose name ends in `suffix`, with its `run.json` and plan. Raises StoreError."""
    started = datetime.now(UTC)
    cases = tuple(dict.fromkeys(trial.case for trial in trials))
    folder = store.new_run(tuple(f"{case}{suffix}" for case in cases), started)
    seed = random.SystemRandom().getrandbits(32)
    backends = sorted({trial.target.backend for trial in trials})
    info = RunInfo(
        run=folder.name,
        started=started.isoformat(timespec="seconds"),
        rnnbench=__version__,
        command=("rnnbench", *sys.argv[1:]),
        cases=cases,
        seed=seed,
        machine=describe_machine(),
        versions={name: dict(probe_or_stand_in(name).versions) for name in backends},
    )
    expected = {case: tuple(entries) for case, entries in (expected_failures or {}).items()}
    (folder / TRIALS).write_bytes(_trials_adapter().dump_json(list(trials)))
    (folder / EXPECTED_FAILURES).write_bytes(_expected_adapter().dump_json(expected))
    write_info(folder, info)
    return RunPlan(folder, tuple(trials), seed, expected)


def resume_run(folder: Path) -> RunPlan:
    """The rest of a run that was interrupted: the trials that have no record yet. Raises StoreError."""
    run = read_run(folder)
    done = {record.trial for record in run.records}
    trials = _read(folder / TRIALS, _trials_adapter())
    expected = _read(folder / EXPECTED_FAILURES, _expected_adapter())
    return RunPlan(folder, tuple(trial for trial in trials if trial.id not in done), run.info.seed, expected)


def end_run(folder: Path, seconds: Mapping[str, float], conditions: MachineConditions | None = None) -> None:
    """Note when the run ended, what else the machine did, and where its time went, added up over all sittings."""
    info = read_run(folder).info
    total = {key: info.seconds.get(key, 0.0) + value for key, value in seconds.items()}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    changes = {
        "finished": finished,
        "seconds": {**info.seconds, **total},
        "conditions": conditions and Conditions(**asdict(conditions)),
    }
    write_info(folder, info.model_copy(update=changes))


@cache
def _trials_adapter() -> TypeAdapter[list[Trial]]:
    return TypeAdapter(list[Trial])


@cache
def _expected_adapter() -> TypeAdapter[dict[str, tuple[ExpectedFailure, ...]]]:
    return TypeAdapter(dict[str, tuple[ExpectedFailure, ...]])


def _read(path: Path, adapter: TypeAdapter[T]) -> T:
    try:
        return adapter.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(f"{path}: cannot be read, so the run cannot be resumed; start a new one") from error
