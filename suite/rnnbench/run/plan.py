"""What a run is going to do: its trials, kept in its folder so that an interrupted run can go on."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from rnnbench import __version__
from rnnbench.backends.registry import find
from rnnbench.cases import ExpectedFailure
from rnnbench.cases.trial import Trial
from rnnbench.measure.machine import describe_machine
from rnnbench.results.run_info import Conditions, RunInfo
from rnnbench.results.store import Store, StoreError, read_run, write_info

T = TypeVar("T")

TRIALS = "trials.json"
EXPECTATIONS = "expectations.json"
_ADAPTER = TypeAdapter(list[Trial])
_KNOWN = TypeAdapter(dict[str, tuple[ExpectedFailure, ...]])

Known = Mapping[str, Sequence[ExpectedFailure]]
"""The failures that are known, by case."""


def begin(trials: Sequence[Trial], store: Store, known: Known | None = None, suffix: str = "") -> Path:
    """Make the folder of a new run, its name ending in `suffix`, with `run.json` and its plan. Raises StoreError."""
    started = datetime.now(UTC)
    cases = tuple(dict.fromkeys(trial.case for trial in trials))
    run = store.new_run(tuple(f"{case}{suffix}" for case in cases), started)
    info = RunInfo(
        run=run.name,
        started=started.isoformat(timespec="seconds"),
        rnnbench=__version__,
        command=("rnnbench", *sys.argv[1:]),
        cases=cases,
        seed=random.SystemRandom().getrandbits(32),
        machine=describe_machine(),
        versions={name: dict(find(name).probe().versions) for name in sorted({t.target.backend for t in trials})},
    )
    (run / TRIALS).write_text(json.dumps(_ADAPTER.dump_python(list(trials), mode="json")))
    (run / EXPECTATIONS).write_bytes(_KNOWN.dump_json({case: tuple(found) for case, found in (known or {}).items()}))
    write_info(run, info)
    return run


def known_failures(run: Path) -> Known:
    """What was known to fail as the run began, by case. Raises StoreError."""
    return _read(run / EXPECTATIONS, _KNOWN)


def remaining(run: Path) -> list[Trial]:
    """The trials of a run that have no record yet. Raises StoreError."""
    done = {record.trial for record in read_run(run).records}
    return [trial for trial in _read(run / TRIALS, _ADAPTER) if trial.id not in done]


def end(run: Path, seconds: dict[str, float], conditions: Conditions | None = None) -> None:
    """Note when the run ended and under what conditions, and add up where its time went over all of its sittings."""
    info = read_run(run).info
    spent = {key: info.seconds.get(key, 0.0) + value for key, value in seconds.items()}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    changes = {"finished": finished, "seconds": {**info.seconds, **spent}, "conditions": conditions}
    write_info(run, info.model_copy(update=changes))


def _read(path: Path, adapter: TypeAdapter[T]) -> T:
    try:
        return adapter.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(f"{path}: cannot be read, so the run cannot go on; start a new one") from error
