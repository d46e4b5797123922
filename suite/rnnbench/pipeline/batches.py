"""The trials of a run before sampling: built and loaded alone, since both are timed, then checked side by side."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Lock
from time import monotonic

from rnnbench.cases import Trial
from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import cores_at_once, free_memory
from rnnbench.pipeline.build_and_check import TrialWorker, build, check, import_framework, load
from rnnbench.sampling import Context, most_workers
from rnnbench.stages import Built, Checked, Examined, ImportFigures
from rnnbench.worker import WorkerProcess, log_name, start_trial_worker

Comparing = Callable[[Checked, TrialWorker], Checked]
"""Called with each checked trial and the worker that has its program. It returns the trial, perhaps with findings."""

AHEAD = 2
"""Batches whose workers may start before their turn: one imports beside this batch, one starts when checks end."""

Pair = tuple[Examined, Context]


def build_and_check_all(trials: Sequence[Pair], compare: Comparing = lambda checked, _: checked) -> Iterator[Checked]:
    """Build, load and check each trial in a worker of its own. The trials must not have failed yet.

    As many trials are checked at once as the machine has cores and memory for. While one is built or loaded, all other
    workers are stopped. Imports take different times, so the workers of AHEAD further batches import beside those of
    this batch: no core is idle.
    """
    cores, memory = sorted(os.sched_getaffinity(0)), free_memory()
    with ExitStack() as open_workers:
        batches = [Batch(batch, cores, open_workers) for batch in in_batches(trials, cores_at_once(), memory)]
        for number, batch in enumerate(batches):
            ahead = ahead_of(batches, number, memory)
            if not batch.has_imported or any(other.is_importing for other in ahead):
                for starting in (batch, *ahead):
                    starting.start_all()
            for importing in (batch, *ahead):
                importing.finish_imports()
            yield from batch.results(compare, partial(_start_next, ahead or batches[number + 1 : number + 2]))


def ahead_of(batches: Sequence[Batch], number: int, memory: int) -> list[Batch]:
    """The next batches whose workers may run beside this batch's: at most AHEAD, and as many as `memory` bytes hold."""
    ahead, taken = [], batches[number].memory
    for following in batches[number + 1 : number + 1 + AHEAD]:
        taken += following.memory
        if taken > memory:
            break
        ahead.append(following)
    return ahead


def _start_next(ahead: Sequence[Batch]) -> None:
    """Start the next worker of the first batch that lacks one."""
    for batch in ahead:
        if batch.start_next():
            return


def in_batches(trials: Sequence[Pair], cores: int, memory: int) -> Iterator[list[Pair]]:
    """Group trials, in order, whose threads fit on `cores` and limits in `memory` bytes together, and whose workers fit
    on their devices. One trial always fits.
    """
    batch: list[Pair] = []
    for pair in trials:
        together = [examined for examined, _ in (*batch, pair)]
        threads = sum(examined.trial.threads for examined in together)
        limits = sum(examined.trial.limits.memory for examined in together)
        if batch and (threads > cores or limits > memory or not _fit_on_devices(together)):
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


def _fit_on_devices(together: Sequence[Examined]) -> bool:
    workers = Counter(examined.trial.device for examined in together)
    rooms = ((workers[examined.trial.device], most_workers(examined)) for examined in together)
    return all(most is None or count <= most for count, most in rooms)


class Batch:
    """Trials that are checked at once, and their workers. A worker has its own cores, unless it waits for a device."""

    def __init__(self, trials: Sequence[Pair], cores: Sequence[int], open_workers: ExitStack) -> None:
        lock = Lock()
        self._trials = [
            (examined, replace(context, on_stage=_one_at_a_time(context, lock))) for examined, context in trials
        ]
        self._cores = cores
        self._open_workers = open_workers
        self._workers: list[WorkerProcess[ImportFigures]] = []
        self._imported: list[Built] = []

    @property
    def memory(self) -> int:
        """Bytes that its workers may use together."""
        return sum(examined.trial.limits.memory for examined, _ in self._trials)

    @property
    def is_importing(self) -> bool:
        return len(self._imported) < len(self._workers)

    @property
    def has_imported(self) -> bool:
        return len(self._imported) == len(self._trials)

    def start_next(self) -> bool:
        """Start the worker of the next trial, without waiting for it. Returns False if all are started."""
        number = len(self._workers)
        if number == len(self._trials):
            return False
        examined, context = self._trials[number]
        cores = self._cores
        if not examined.waits_for_device:
            end = len(cores) - sum(examined.trial.threads for examined, _ in self._trials[:number])
            cores = cores[max(0, end - examined.trial.threads) : end]
        worker = start_trial_worker(examined, context.folders, log_name(examined.trial), cores)
        self._open_workers.callback(worker.close)
        self._workers.append(worker)
        return True

    def start_all(self) -> None:
        while self.start_next():
            pass

    def finish_imports(self) -> None:
        """Wait until the started workers have imported their frameworks, and stop them."""
        for number in range(len(self._imported), len(self._workers)):
            (examined, context), worker = self._trials[number], self._workers[number]
            self._imported.append(import_framework(examined, worker, context))
            worker.pause()

    def results(self, compare: Comparing, when_one_is_checked: Callable[[], object]) -> Iterator[Checked]:
        """Yield each trial once. A failed trial is yielded at once, so that its record does not wait for the others."""
        loaded: dict[int, Checked] = {}
        for number, trial in enumerate(self.build_and_load()):
            if trial.failure is not None:
                yield trial
            else:
                loaded[number] = trial
        passed: dict[int, Checked] = {}
        for number, trial in self.check(loaded):
            when_one_is_checked()
            if trial.failure is not None:
                yield trial
            else:
                passed[number] = trial
        for number, trial in sorted(passed.items()):
            self._workers[number].resume()
            compared = compare(trial, self._workers[number])
            self._workers[number].close()
            yield compared

    def build_and_load(self) -> Iterator[Checked]:
        """Build and load the trials one by one, after all imports. Each worker is stopped when it has loaded."""
        self.start_all()
        self.finish_imports()
        for imported, (_, context), worker in zip(self._imported, self._trials, self._workers, strict=True):
            worker.resume()
            loaded = _with_device_memory(load(build(imported, worker, context), worker, context), worker.pid)
            self._end_or_stop(loaded, worker)
            yield loaded

    def check(self, loaded: Mapping[int, Checked]) -> Iterator[tuple[int, Checked]]:
        """Check all trials at once. Yields numbers and results as they end. An interrupt ends the workers first.

        It only kills them: the thread that uses a worker waits for its end, and a second thread would find no process.
        """
        started = monotonic()
        with ThreadPoolExecutor(max(1, len(loaded))) as pool:
            try:
                threads = {pool.submit(self._check, number, trial): number for number, trial in loaded.items()}
                for thread in as_completed(threads):
                    number, checked = threads[thread], thread.result()
                    self._trials[number][1].wall_time.add("reference", checked.reference_s)
                    yield number, checked
            except BaseException:
                for number in loaded:
                    self._workers[number].kill()
                raise
        for number in loaded:
            self._trials[number][1].wall_time.add("check", (monotonic() - started) / len(loaded))

    def _check(self, number: int, loaded: Checked) -> Checked:
        worker, (_, context) = self._workers[number], self._trials[number]
        worker.resume()
        checked = check(loaded, worker, context, reuse=True)
        self._end_or_stop(checked, worker)
        return checked

    @staticmethod
    def _end_or_stop(trial: Checked, worker: WorkerProcess[ImportFigures]) -> None:
        if trial.failure is not None:
            worker.close()
        else:
            worker.pause()


def _with_device_memory(loaded: Checked, pid: int) -> Checked:
    """The trial with its process's memory on the device, if this kind of device reports it."""
    read = KINDS[loaded.trial.device].process_memory
    if read is None or loaded.failure is not None:
        return loaded
    try:
        return replace(loaded, device_memory=read(pid))
    except UnmeasuredError as error:
        return replace(loaded, unmeasured={**loaded.unmeasured, "device_memory": str(error)})


def _one_at_a_time(context: Context, lock: Lock) -> Callable[[Trial, str], None]:
    def on_stage(trial: Trial, stage: str) -> None:
        with lock:
            context.on_stage(trial, stage)

    return on_stage
