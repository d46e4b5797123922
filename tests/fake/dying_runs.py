"""Runs in which trials die, with healthy ones among them: each has the right outcome, and harms no other."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from harness_trials import SilentObserver, begin_with_seed, make_trial
from killed_runs import LATER_S, MARK, left_of
from unasked import unasked_adapters
from waiting import PATIENCE_S
from ways_of_dying import WAYS, Kind

from rnnbench.cases import Limits, Measure, Trial
from rnnbench.pipeline import check_trials, run_trials
from rnnbench.results import FAILURES, Record, Store
from rnnbench.worker import WorkerError, WorkerProcess, adapter_process
from rnnbench.worker.supervisor import supervise

Death = tuple[str, str]
"""A stage and a way."""
FOLDER = Path(__file__).parent / "dying"
NEIGHBOUR = "numpy:eager"
"""A healthy trial in a worker of its own. Another one is in the workers of the dying while they are sampled."""
FAKE = "dying"
"""The backend that dies: the reference in NumPy. `dying-real` is ONNX Runtime's adapter, with the same ways."""
HANGING = Limits(build=2.0, trial=2.0)
"""For ways that hang."""
GROWING = Limits(build=60.0, trial=60.0, memory=500 << 20)
"""For ways that take memory."""
PATIENT = Limits(build=120.0, trial=120.0)
"""For all other ways, and for healthy trials: on a slow machine, too, they come to their own end."""
ANSWER_S = 5.0
"""Longest that an adapter may take to answer, in a run of which one hangs. Otherwise it has what every adapter has."""
START_S = 20.0
"""Longest start of a worker, in a run of which one hangs in its import."""
MEASURE = Measure(budget=0.2, processes=1, precision=1e-6, settings={"cold": 1.0, "period": 0.002})
SHARED = ("prepare", "state-copy", "bound", "public", "cold", "paced", "verify")
"""Stages in a process that holds other trials too. What leaves it unfit for them fails."""
FURTHER = ("state-copy", "cold", "paced")
"""Stages that measure a figure beside the latencies that every trial has. A failure there costs this figure alone."""
IGNORED = ("entry", "import", "bound", "public", "cold", "paced")
"""Stages in which nobody looks at what a call returns."""


def outcomes(way: str, stage: str) -> frozenset[str]:
    """With which outcomes a trial may end that goes this way in this stage."""
    kind = WAYS[way].kind
    any_failure = frozenset(FAILURES | {"nonconforming"})
    by_kind = {
        Kind.RAISES: frozenset({"build-failed" if stage == "build" else "run-failed"}),
        Kind.NO_MEMORY: frozenset({"out-of-memory"}),
        Kind.EXITS: frozenset({"crashed"}),
        Kind.DIES: frozenset({"crashed"}),
        Kind.BREAKS_CHANNEL: frozenset({"crashed"}),
        Kind.HANGS: frozenset({"timed-out"}),
        Kind.SURVIVES: frozenset({"ok", "run-failed"} if stage in SHARED else {"ok"}),
        Kind.HARMS_ITSELF: any_failure | {"ok"},
        Kind.LIES: any_failure | ({"ok"} if stage in (*IGNORED, *FURTHER) else frozenset()),
    }
    failures = frozenset({Kind.RAISES, Kind.NO_MEMORY, Kind.EXITS, Kind.DIES, Kind.BREAKS_CHANNEL, Kind.HANGS})
    return frozenset({"ok"}) if stage in FURTHER and kind in failures else by_kind[kind]


def _healthy(backend: str) -> tuple[str, str]:
    return f"{backend}:honest", NEIGHBOUR


@dataclass
class Ended:
    """How a run with dying trials went."""

    records: dict[str, Record]
    """By target."""
    backend: str = FAKE
    late: list[str] = field(default_factory=list)
    """Commands that failed later than their limit and LATER_S, and processes that outlived the run by LATER_S, a line
    each. On a busy machine these are no mistakes."""
    left: list[str] = field(default_factory=list)
    """Processes and files that were left."""

    def mistakes(self, dying: Iterable[Death]) -> list[str]:
        """What is not as it should be, a line each, without what is late."""
        harmed = [target for target in _healthy(self.backend) if not self._is_ok(target)]
        lines = [f"{target}: harmed: {_told(self.records.get(target))}" for target in harmed]
        for stage, way in dying:
            record = self.records.get(f"{self.backend}:{stage}.{way}")
            expected = outcomes(way, stage)
            if record is None or record.outcome not in expected:
                lines.append(f"{stage}.{way}: expected {', '.join(sorted(expected))}: {_told(record)}")
        return lines + [f"left: {process}" for process in self.left]

    def _is_ok(self, target: str) -> bool:
        return target in self.records and self.records[target].outcome == "ok"


def _told(record: Record | None) -> str:
    return "no record" if record is None else f"{record.outcome} in {record.stage!r}: {record.reason[:300]}"


def die_together(dying: Sequence[Death], folder: Path, *, timed: bool = True, backend: str = FAKE) -> Ended:
    """One run with a trial for each death and the healthy ones; a check, side by side, where it is not `timed`.

    Its folder is removed.
    """
    trials = [_trial(target, PATIENT) for target in _healthy(backend)]
    trials += [_trial(f"{backend}:{stage}.{way}", _limits(way)) for stage, way in dying]
    observer = SilentObserver()
    with enlisted(folder), _short_waits(dying), _watched() as late:
        plan = begin_with_seed(trials, Store(folder / "results"))
        if timed:
            run_trials(plan, observer)
        else:
            check_trials(plan, observer, jobs=2, shrinks=False)
    files = _files_left(folder, plan.folder)
    left, outlived = _wait_for_processes(folder)
    shutil.rmtree(folder, ignore_errors=True)
    records = {record.target: record for record in observer.records}
    return Ended(records, backend, late + outlived, [*left, *files])


WITH_A_COPY = ("run.json", "trials.json", "expected_failures.json")
OF_A_RUN = {*WITH_A_COPY, *(f"{name}.copy" for name in WITH_A_COPY), "records.jsonl", "run.lock", "logs", "samples"}
"""What a run that has ended keeps in its folder."""
TEMPORARY = "temporary"


def _files_left(folder: Path, run: Path) -> list[str]:
    """Files that are none of a finished run's, and all temporary files."""
    parts = [path.name for path in run.rglob(".*")]
    return [*sorted({path.name for path in run.iterdir()} - OF_A_RUN), *parts, *os.listdir(folder / TEMPORARY)]


def _wait_for_processes(folder: Path) -> tuple[list[str], list[str]]:
    """Wait for the end of the run's processes: those that do not end, and those that ended late."""
    ended, outlived = time.monotonic(), list[str]()
    while (left := _left_of(folder)) and time.monotonic() < ended + PATIENCE_S:
        if time.monotonic() > ended + LATER_S:
            outlived = outlived or [f"outlived the run by {LATER_S:g} s: {process}" for process in left]
        time.sleep(0.05)
    return left, outlived


def _left_of(folder: Path) -> list[str]:
    """Command lines of the processes that are left of a run, without the one that waits for this process to end."""
    commands = [" ".join(process.cmdline()) for process in left_of(folder)]
    return [command for command in commands if "supervisor" not in command]


def _limits(way: str) -> Limits:
    return {Kind.HANGS: HANGING, Kind.NO_MEMORY: GROWING}.get(WAYS[way].kind, PATIENT)


def _trial(target: str, limits: Limits) -> Trial:
    return make_trial(target, measure=MEASURE, limits=limits)


@contextmanager
def enlisted(folder: Path) -> Iterator[None]:
    """The dying backend is installed, and every process of the run has a mark."""
    supervise().remove()  # The folder of this process's supervisor is none of the run's.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")]))
        patch.setenv(MARK, str(folder))
        (folder / TEMPORARY).mkdir(parents=True)
        patch.setenv("TMPDIR", str(folder / TEMPORARY))
        patch.setattr("tempfile.tempdir", None)
        patch.setattr(adapter_process, "MEMORY_LIMIT", GROWING.memory)
        with unasked_adapters():
            yield


@contextmanager
def _short_waits(dying: Sequence[Death]) -> Iterator[None]:
    """Adapters and imports are waited for less long where one hangs: it would take all of their limit."""
    hanging = {stage for stage, way in dying if WAYS[way].kind is Kind.HANGS}
    with pytest.MonkeyPatch.context() as patch:
        if "import" in hanging:
            patch.setattr(WorkerProcess.ready, "__defaults__", (START_S, None))
        if hanging & {"entry", "probe", "support"}:
            patch.setattr(adapter_process, "ANSWER_LIMIT_S", ANSWER_S)
        yield


@contextmanager
def _watched() -> Iterator[list[str]]:
    """Collects the commands that failed later than their limit and LATER_S, a line each."""
    late: list[str] = []
    ask = WorkerProcess.ask

    @wraps(ask)
    def watched(self: Any, command: Any, timeout: float, *rest: Any) -> Any:
        began = time.monotonic()
        try:
            return ask(self, command, timeout, *rest)
        except WorkerError:
            took = time.monotonic() - began
            if took > timeout + LATER_S:
                late.append(f"{type(command).__name__} took {took:.1f} s, its limit is {timeout:g} s")
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerProcess, "ask", watched)
        yield late
