"""The plan of a run: its trials, expected failures and seed. It is kept in the run's folder, for `--resume`."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rnnbench import __version__
from rnnbench.backends import BackendError, names
from rnnbench.cases import Case, ExpectedFailure, Trial, expected_failures_for
from rnnbench.conformance import CHECKS_BY_NAME
from rnnbench.disk import remove_folder
from rnnbench.measure import MachineConditions, describe_machine
from rnnbench.outside_text import safe_text
from rnnbench.plan.adapters import close_adapters, probe_or_stand_in
from rnnbench.plan.plan_files import read_expected_failures, read_trials, restore_damaged, write_plan
from rnnbench.plan.run_lock import RunLock, hold_run, move_lock
from rnnbench.plan.shards import ShardedPlan
from rnnbench.results import (
    Conditions,
    RunInfo,
    Store,
    StoreError,
    by_package,
    differences,
    machine_differences,
    read_info,
    read_run,
    require_appendable,
    run_name,
    unwritable,
    write_info,
    write_whole_plan,
)
from rnnbench.spelling import count

ExpectedFailures = Mapping[str, Sequence[ExpectedFailure]]
"""The expected failures of each case."""
ABANDONED_S = 600.0
"""Seconds after which the folder of a run that never began is removed, if no process holds its lock. A run takes about
a second to begin."""


@dataclass(frozen=True)
class RunPlan:
    """The trials of a run, and how they are run."""

    folder: Path
    trials: tuple[Trial, ...]
    seed: int
    """The seed of the order in which trials are sampled."""
    expected_failures: ExpectedFailures = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    """Sentences about what has changed since a resumed run began."""
    is_empty: bool = False
    """Whether this is a shard without trials."""
    is_new: bool = field(default=False, compare=False)
    """Whether this process has made the folder. False for a resumed run."""
    lock: RunLock | None = field(default=None, compare=False, repr=False)
    """The run's lock. While the plan exists, no other process can resume the run."""

    def expected_of(self, trial: Trial) -> Sequence[ExpectedFailure]:
        return self.expected_failures.get(trial.case, ())


def expected_failures(
    cases: Iterable[Case], trials: Iterable[Trial], file: Path | None = None
) -> dict[str, tuple[ExpectedFailure, ...]]:
    """The expected failures of the trials' backends, by case. They come from `file`, or from each case's own file.

    Raises CaseError.
    """
    backends = sorted({trial.target.backend for trial in trials})
    probes = {backend: probe_or_stand_in(backend) for backend in backends}
    return expected_failures_for(cases, probes, CHECKS_BY_NAME, file, names=names())


def begin_run(
    trials: Sequence[Trial],
    store: Store,
    expected_failures: ExpectedFailures | None = None,
    suffix: str = "",
    side: str = "",
    shard: ShardedPlan | None = None,
    case_files: Sequence[Path] = (),
    started: datetime | None = None,
) -> RunPlan:
    """Make the folder of a new run, whose name ends in `suffix`, with its `run.json` and plan. Raises StoreError.

    With `side`, the run is this side of a comparison, and its name ends in it. With `shard`, the run has the trials of
    this shard of the plan, and its name ends in the shard's number. `case_files` are what a check was given. Runs that
    belong together have one time in `started`.
    """
    started = started or datetime.now(UTC)
    suffix = f"-{side}" if side else suffix
    cases = tuple(dict.fromkeys(f"{trial.case}{suffix}" for trial in trials))
    ending = "" if shard is None else f"-{shard.info.number}-of-{shard.info.of}"
    name = run_name(cases, started, ending)
    _remove_abandoned(store)
    begun = store.begin_folder()
    try:
        lock = hold_run(begun)
        plan, info = _begun(begun, started, trials, expected_failures or {}, shard, case_files)
        info = info.model_copy(update={"side": side or None})
        folder = store.put_run(begun, name, info)
    except BaseException:
        remove_folder(begun)  # A run without all of its files could not be resumed.
        raise
    move_lock(begun, folder)
    return replace(plan, folder=folder, is_new=True, lock=lock)


def discard_run(plan: RunPlan) -> None:
    """Remove the folder of a new run that ended before its first record."""
    if plan.is_new and not read_run(plan.folder).records:
        remove_folder(plan.folder)


def _remove_abandoned(store: Store) -> None:
    """Remove the folders of runs whose process was killed while it began them."""
    for folder in store.begun():
        with suppress(OSError, StoreError):
            if time.time() - folder.stat().st_mtime > ABANDONED_S:
                lock = RunLock(folder)  # Not `hold_run`: this process may begin another run.
                remove_folder(folder)
                del lock


def _begun(
    folder: Path,
    started: datetime,
    trials: Sequence[Trial],
    expected_failures: ExpectedFailures,
    shard: ShardedPlan | None,
    case_files: Sequence[Path],
) -> tuple[RunPlan, RunInfo]:
    """Write the files of a new run into its folder, all but `run.json`. Raises StoreError."""
    trials = trials if shard is None else shard.trials
    seed = random.SystemRandom().getrandbits(32)
    backends = sorted({trial.target.backend for trial in trials if not trial.pinned})
    expected = {case: tuple(entries) for case, entries in expected_failures.items()}
    try:
        digest = write_plan(folder, trials, expected)
        if shard is not None:
            write_whole_plan(folder, shard.whole)
    except OSError as error:
        raise unwritable(folder, error) from error
    info = RunInfo(
        run=folder.name,
        started=started.isoformat(timespec="milliseconds"),
        rnnbench=__version__,
        command=("rnnbench", *map(safe_text, sys.argv[1:])),
        directory=_present_folder(folder),
        cases=tuple(dict.fromkeys(trial.case for trial in trials)),
        case_files=tuple(safe_text(str(file)) for file in case_files),
        seed=seed,
        trials=digest,
        machine=describe_machine(),
        versions={name: _versions(name) for name in backends},
        thresholds={trial.case: dict(trial.thresholds) for trial in trials if trial.thresholds},
        shard=None if shard is None else shard.info,
    )
    return RunPlan(folder, tuple(trials), seed, expected, is_empty=shard is not None and not trials), info


def _present_folder(folder: Path) -> str | None:
    """The working folder, relative to the run's; None if it was removed."""
    try:
        return os.path.relpath(os.path.realpath("."), os.path.realpath(folder))
    except FileNotFoundError:
        return None


def resume_run(folder: Path, *, elsewhere: bool = False) -> RunPlan:
    """The plan of the rest of an interrupted run: the trials that have no record yet.

    With `elsewhere`, a cluster measures them, and this machine is not compared with the run's.

    Raises StoreError, also if another process runs it.
    """
    info, _ = read_info(folder)
    if info.merged is not None:
        shards = count(len(info.merged.numbers), "shard")
        raise StoreError(f"{folder} is merged of {shards}; resume the run of a shard, and merge them again")
    # The records are read under the lock, when nobody else can append one.
    lock = hold_run(folder)
    require_appendable(folder)
    try:
        restored = tuple(restore_damaged(folder, info.trials))
    except OSError as error:
        raise unwritable(folder, error) from error
    run = read_run(folder)
    if run.info.side is not None:
        raise StoreError(
            f"{folder} is side {run.info.side.upper()} of a comparison of two environments, whose trials are judged "
            f"together; give the command that compared them again"
        )
    if run.info.case_files:
        raise StoreError(
            f"{folder} is a run of `rnnbench check`, and `rnnbench run` would time the rest of its trials; check the "
            f"same cases again"
        )
    recorded = {record.trial for record in run.records}
    left = tuple(trial for trial in read_trials(folder, run.info.trials) if trial.id not in recorded)
    if left and run.unread:
        raise StoreError(
            f"{run.unread}, or move it away to run all trials again: a record that is added would not be found"
        )
    changes = (*restored, *_changes(run.info, elsewhere=elsewhere))
    return RunPlan(folder, left, run.info.seed, read_expected_failures(folder), changes, lock=lock)


def end_run(
    folder: Path,
    seconds: Mapping[str, float],
    conditions: MachineConditions | None = None,
    edited: Iterable[str] = (),
) -> None:
    """Write into `run.json` when the run ended, how busy the machine was, and how long each part of the run took.

    The seconds are added to those of earlier sessions of a resumed run. `edited` are packages that changed during the
    run.
    """
    close_adapters()
    run = read_run(folder)
    info = run.info
    total = {key: info.seconds.get(key, 0.0) + value for key, value in seconds.items()}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    changes = {
        "finished": finished,
        "records": len(run.records),
        "seconds": {**info.seconds, **total},
        "conditions": conditions and Conditions(**asdict(conditions)),
        "edited": tuple(sorted({*info.edited, *edited})),
    }
    write_info(folder, info.model_copy(update=changes))


def _changes(info: RunInfo, *, elsewhere: bool) -> Iterator[str]:
    """Sentences about what has changed since the run began: rnnbench, the backends' packages, the machine."""
    before = {name: by_package(versions) for name, versions in info.versions.items()}
    now = {name: by_package(_versions(name)) for name in info.versions}
    for what, old, new in differences({"rnnbench": info.rnnbench, **before}, {"rnnbench": __version__, **now}):
        yield f"{what} is {new}, and was {old} when the run began; its trials are of different versions"
    if elsewhere:
        return
    for what, old, new in machine_differences(info.machine, _as_read(describe_machine())):
        yield f"the machine's {what} is {new}, and was {old} when the run began; do not compare its latencies"


def _as_read(machine: Mapping[str, object]) -> dict[str, object]:
    """The description as it is read back from a file."""
    content: dict[str, object] = json.loads(json.dumps(machine))
    return content


def _versions(backend: str) -> dict[str, str]:
    """The versions of a backend's packages; none if it is not installed."""
    try:
        return dict(probe_or_stand_in(backend).versions)
    except BackendError:
        return {}
