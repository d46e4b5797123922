"""The check after sampling, on other cores, while the next processes import, load and are checked.

Neither is timed. The sampled processes move to the other cores, since nothing more is timed in them. The next ones are
prepared on the cores on which they will be timed, since a runtime may bind its threads while it loads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from rnnbench.cases import Trial
from rnnbench.measure import WallTime, free_memory
from rnnbench.sampling.groups import MEMORY_SHARE
from rnnbench.sampling.sampling_worker import SamplingWorker


def cores_beside(
    trial: Trial, nbytes: int, cores: Sequence[int] | None = None, available: int | None = None
) -> list[int]:
    """Cores for the check: as many as the trial has threads, and not those on which it is timed. Empty without room.

    `nbytes` is the memory of one set of processes. Two sets run at once. Two sets would share a device other than the
    processor, so there is no room on such a device.
    """
    cores = sorted(os.sched_getaffinity(0)) if cores is None else cores
    available = free_memory() if available is None else available
    beside = list(cores[: -trial.threads][-trial.threads :])
    if trial.device != "cpu" or len(beside) < trial.threads or 2 * nbytes > MEMORY_SHARE * available:
        return []
    return beside


@contextmanager
def verified_beside(workers: Iterable[SamplingWorker], cores: Sequence[int], wall_time: WallTime) -> Iterator[None]:
    """Check the timed calls of `workers` on `cores`, while the body of `with` does other work that is not timed.

    Workers that still wait when the body ends are checked on the cores on which they were timed. An exception of the
    body ends all workers. The time spent waiting for `cores` after the body counts as time of checks.
    """
    everyone = sorted(workers, key=lambda worker: len(worker.trials), reverse=True)
    waiting = deque(everyone)

    def verify_aside() -> None:
        for worker in _take_all(waiting.popleft):
            worker.step_aside(cores)
            worker.verify()

    with ThreadPoolExecutor(1) as pool:
        verified = pool.submit(verify_aside)
        try:
            yield
            for worker in _take_all(waiting.pop):
                worker.verify()
            with wall_time.spent_on("check"):
                verified.result()
        except BaseException:
            waiting.clear()
            for worker in everyone:
                worker.abandon()
            raise


def _take_all(take: Callable[[], SamplingWorker]) -> Iterator[SamplingWorker]:
    """Take workers from a queue until it is empty. Two threads do so, from either end."""
    with suppress(IndexError):
        while True:
            yield take()
