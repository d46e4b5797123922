"""`rnnbench check`: build and check trials side by side, one on each core. Nothing is timed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import accumulate
from threading import Event, Lock

from rnnbench.cache import CacheFolder
from rnnbench.cases import Target, Trial
from rnnbench.measure import MachineWatch, WallTime, cores_at_once, free_memory
from rnnbench.pipeline.build_and_check import build_and_check_trial, not_checked, not_sampled
from rnnbench.pipeline.record import Journal, Observer
from rnnbench.pipeline.run import see_files
from rnnbench.pipeline.shrink import first_failed_check, shrink
from rnnbench.plan import RunPlan, close_adapters, end_run, examine_all
from rnnbench.sampling import Context, most_workers
from rnnbench.stages import Checked, Examined
from rnnbench.worker import ForkedWorker, ForkingWorker, RunFolders, log_name, start_trial_worker, worker_key

SLOW_BUILD = 20
"""A trial on a route with slow builds takes as long as this many others."""
MOST_SHRUNK = 4
"""The most failures of one `rnnbench check` that are shrunk. Each may take a minute."""


def check_trials(
    plan: RunPlan,
    observer: Observer,
    jobs: int | None = None,
    *,
    shrinks: bool = True,
    examined: Sequence[Examined] | None = None,
    cache: CacheFolder | None = None,
) -> list[Checked]:
    """Check the trials of a run side by side, append each record when it is complete, and end the run.

    `jobs` trials are checked at once; None means as many as there are cores and free memory for. `examined` are the
    trials as another environment examined them; None means the running environment. `cache` has the programs of earlier
    runs; None means that this run builds everything. A KeyboardInterrupt is raised after every worker has ended.

    Returns the smallest trials that fail like the first failed one of each target and check, at most MOST_SHRUNK; none
    without `shrinks`.
    """
    wall_time, watch = WallTime(), MachineWatch()
    folders = RunFolders.of_run(plan.folder)
    kept = cache and replace(cache, times=False)
    checking = CheckPool(plan, Context(replace(folders, cache=kept), wall_time, observer.stage), observer)
    examined = examine_all(plan.trials) if examined is None else examined
    files = see_files(examined)
    checking.run(jobs or min(cores_at_once(), in_memory(examined, free_memory())), examined)
    end_run(plan.folder, wall_time.seconds(), watch.conditions(), files.changed())
    to_shrink = list(checking.failed.values())[:MOST_SHRUNK] if shrinks else []
    smallest = [shrink(checked, folders) for checked in to_shrink]
    folders.clear()
    return smallest


def in_memory(examined: Sequence[Examined], memory: int) -> int:
    """How many of these trials, whichever they are, may use all of their memory at once. One trial always fits."""
    limits = sorted((one.trial.limits.memory for one in examined if one.failure is None), reverse=True)
    return max(1, sum(together <= memory for together in accumulate(limits)))


class WaitingTrials:
    """Trials that wait for a worker, in groups that can share one. Several threads use it."""

    def __init__(self, trials: Iterable[Examined]) -> None:
        self._lock = Lock()
        self._groups: defaultdict[Hashable, list[Examined]] = defaultdict(list)
        self._threads: defaultdict[Hashable, int] = defaultdict(int)
        """The number of threads that take trials of each group."""
        for examined in trials:
            self._groups[worker_key(examined)].append(examined)

    def next(self, group: Hashable | None) -> Examined | None:
        """The next trial for a thread whose last trial was in `group`; None if no trial waits.

        It is from the same group if a trial is left there. Otherwise it is from the group with the fewest threads, and
        among these from the group that will take longest.
        """
        with self._lock:
            if group is not None and self._groups.get(group):
                return self._groups[group].pop(0)
            self._threads[group] -= 1
            waiting = [key for key, trials in self._groups.items() if trials]
            if not waiting:
                return None
            key = min(waiting, key=lambda key: (self._threads[key], -sum(map(_cost, self._groups[key]))))
            self._threads[key] += 1
            return self._groups[key].pop(0)


def _cost(examined: Examined) -> int:
    return SLOW_BUILD if examined.trial.target.route in examined.probe.slow else 1


@dataclass
class _Worker:
    """The worker of one thread, and the group of trials that can share it."""

    forking: ForkingWorker | None = None
    key: Hashable | None = None

    def fits(self, examined: Examined) -> bool:
        return self.forking is not None and not self.forking.is_closed and self.key == worker_key(examined)

    def close(self) -> None:
        if self.forking is not None:
            self.forking.close()


class CheckPool:
    """Trials that are checked on some cores at once."""

    def __init__(self, plan: RunPlan, context: Context, observer: Observer) -> None:
        self.failed: dict[tuple[Target, str], Checked] = {}
        """For each target and check, the first trial whose first failed check it was, without expected failures."""
        self._plan = plan
        self._lock = Lock()
        self._context = Context(context.folders, context.wall_time, self._on_stage)
        self._observer = observer
        self._journal = Journal(plan, observer)
        self._interrupted = Event()
        self._open: set[ForkingWorker] = set()

    def run(self, jobs: int, examined: Sequence[Examined]) -> None:
        """Check the trials of the plan. An interrupt or a full disk ends the workers; finished records stay.

        Fewer jobs run where a device has no memory for as many workers.

        Only the thread that uses a worker closes it: if two threads wait for the end of one process, one of them fails.
        """
        close_adapters()
        for one in examined:
            if one.failure is not None:
                self._write(not_checked(one))
        to_check = [one for one in examined if one.failure is None]
        waiting = WaitingTrials(to_check)
        jobs = min([jobs, *(most for one in to_check if (most := most_workers(one)) is not None)])
        cores = sorted(os.sched_getaffinity(0))
        with ThreadPoolExecutor(jobs) as pool:
            try:
                threads = [pool.submit(self._work, waiting, job, cores[job % len(cores)]) for job in range(jobs)]
                for thread in as_completed(threads):
                    thread.result()
            except BaseException:
                self._interrupted.set()
                for worker in list(self._open):
                    worker.kill()
                raise

    def _work(self, waiting: WaitingTrials, job: int, core: int) -> None:
        """Check trials while any wait. Trials that can share a worker come one after another.

        The files of a store are compared before and after each build, so no other build may write into it meanwhile.
        Therefore each job has a store of its own for each backend.
        """
        folders = self._context.folders
        worker = _Worker()
        try:
            while not self._interrupted.is_set() and (examined := waiting.next(worker.key)) is not None:
                store = folders.artifacts / f"job-{job}" / examined.trial.target.backend
                context = replace(self._context, folders=replace(folders, artifacts=store))
                if not worker.fits(examined):
                    self._close(worker)
                    worker = _Worker(self._start(examined, context, core), worker_key(examined))
                assert worker.forking is not None, "it was started"
                if self._interrupted.is_set():
                    return
                self._write(build_and_check_trial(examined, ForkedWorker(worker.forking), context))
        finally:
            self._close(worker)

    def _start(self, examined: Examined, context: Context, core: int) -> ForkingWorker:
        cores: Sequence[int] | None = [core] if examined.trial.threads == 1 else None
        if examined.waits_for_device:
            cores = sorted(os.sched_getaffinity(0))
        process = start_trial_worker(examined, context.folders, log_name(examined.trial), cores)
        worker = ForkingWorker(process)
        self._open.add(worker)
        return worker

    def _close(self, worker: _Worker) -> None:
        worker.close()
        if worker.forking is not None:
            self._open.discard(worker.forking)

    def _write(self, checked: Checked) -> None:
        with self._lock:
            if self._interrupted.is_set():
                return
            record = self._journal.write(not_sampled(checked), timed=False)
            if (name := first_failed_check(checked)) and not record.fails_as_expected:
                self.failed.setdefault((checked.trial.target, name), checked)

    def _on_stage(self, trial: Trial, stage: str) -> None:
        with self._lock:
            self._observer.stage(trial, stage)
