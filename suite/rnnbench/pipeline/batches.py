"""The trials of a run before sampling: built and loaded alone, since both are timed, and then checked side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from threading import Lock
from time import monotonic

from rnnbench.cases import Trial
from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import free_memory
from rnnbench.pipeline.build_and_check import TrialWorker, build, check, import_framework, load
from rnnbench.sampling import Context
from rnnbench.stages import Checked, Examined, ImportFigures
from rnnbench.worker import WorkerProcess, log_name, start_trial_worker

Comparing = Callable[[Checked, TrialWorker], Checked]
"""What a trial is compared with once it is checked, in the worker that has its program."""

Pair = tuple[Examined, Context]


def build_and_check_all(trials: Sequence[Pair], compare: Comparing = lambda checked, _: checked) -> Iterator[Checked]:
    """Every trial that has not failed yet, each in a worker of its own.

    As many as the machine has cores and memory for are checked at once. While one builds or is loaded, which is timed,
    all other workers are stopped. Those of the next batch start as checks end.
    """
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as open_workers:
        batches = [Batch(batch, cores, open_workers) for batch in in_batches(trials, len(cores), free_memory())]
        for batch, following in zip_longest(batches, batches[1:]):
            yield from batch.results(compare, following.start_next if following else lambda: None)


def in_batches(trials: Sequence[Pair], cores: int, memory: int) -> Iterator[list[Pair]]:
    """Trials whose threads and limits of memory fit on the machine together, in their order. One always fits."""
    batch: list[Pair] = []
    for pair in trials:
        together = [examined.trial for examined, _ in (*batch, pair)]
        threads, limits = sum(trial.threads for trial in together), sum(trial.limits.memory for trial in together)
        if batch and (threads > cores or limits > memory):
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


class Batch:
    """Trials that are checked at once, with their workers. Each is held to cores of its own."""

    def __init__(self, trials: Sequence[Pair], cores: Sequence[int], open_workers: ExitStack) -> None:
        lock = Lock()
        self._trials = [
            (examined, replace(context, on_stage=_one_at_a_time(context, lock))) for examined, context in trials
        ]
        self._cores = cores
        self._open_workers = open_workers
        self._workers: list[WorkerProcess[ImportFigures]] = []

    def start_next(self) -> None:
        """Start the worker of the next trial, if there is one. Does not wait for it."""
        number = len(self._workers)
        if number == len(self._trials):
            return
        examined, context = self._trials[number]
        end = len(self._cores) - sum(examined.trial.threads for examined, _ in self._trials[:number])
        cores = self._cores[max(0, end - examined.trial.threads) : end]
        worker = start_trial_worker(examined, context.folders, log_name(examined.trial), cores)
        self._open_workers.callback(worker.close)
        self._workers.append(worker)

    def results(self, compare: Comparing, when_one_is_checked: Callable[[], None]) -> Iterator[Checked]:
        """Each trial once. One that fails comes at once, so that its record does not wait for the others."""
        loaded: dict[int, Checked] = {}
        for number, one in enumerate(self.build_and_load()):
            if one.failure is not None:
                yield one
            else:
                loaded[number] = one
        passed: dict[int, Checked] = {}
        for number, one in self.check(loaded):
            when_one_is_checked()
            if one.failure is not None:
                yield one
            else:
                passed[number] = one
        for number, one in sorted(passed.items()):
            self._workers[number].resume()
            compared = compare(one, self._workers[number])
            self._workers[number].close()
            yield compared

    def build_and_load(self) -> Iterator[Checked]:
        """One after the other, once all workers have imported their frameworks. Each is stopped when it has loaded."""
        while len(self._workers) < len(self._trials):
            self.start_next()
        line = list(zip(self._trials, self._workers, strict=True))
        imported = [import_framework(examined, worker, context) for (examined, context), worker in line]
        for worker in self._workers:
            worker.pause()
        for one, (_, context), worker in zip(imported, self._trials, self._workers, strict=True):
            worker.resume()
            loaded = _with_device_memory(load(build(one, worker, context), worker, context), worker.pid)
            self._end_or_stop(loaded, worker)
            yield loaded

    def check(self, loaded: Mapping[int, Checked]) -> Iterator[tuple[int, Checked]]:
        """All at once, by the numbers of the trials; as they end. An interrupt ends the workers first."""
        started = monotonic()
        with ThreadPoolExecutor(max(1, len(loaded))) as pool:
            try:
                threads = {pool.submit(self._check, number, one): number for number, one in loaded.items()}
                for thread in as_completed(threads):
                    number, checked = threads[thread], thread.result()
                    self._trials[number][1].wall_time.add("reference", checked.reference_s)
                    yield number, checked
            except BaseException:
                for number in loaded:
                    self._workers[number].close()
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
    def _end_or_stop(one: Checked, worker: WorkerProcess[ImportFigures]) -> None:
        if one.failure is not None:
            worker.close()
        else:
            worker.pause()


def _with_device_memory(loaded: Checked, pid: int) -> Checked:
    """With what the program's process has on the device, where its kind can tell."""
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
