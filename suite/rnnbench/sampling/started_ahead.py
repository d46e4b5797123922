"""Processes that import their frameworks side by side, and are stopped until they are sampled in turn.

An import takes as long as the sampling of a trial, and uses one core. If the machine has more cores than one set of
processes needs, the sets that are certain to follow are started with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from types import TracebackType

from rnnbench.measure import cores_at_once, free_memory
from rnnbench.sampling.groups import MEMORY_SHARE
from rnnbench.sampling.sampling_worker import SamplingWorker
from rnnbench.sampling.trial_sampling import TrialSampling

StartSet = Callable[[int], Sequence[SamplingWorker]]
"""Makes the workers of the set of this number. `StartedAhead` starts their processes."""


def sets_at_once(workers: int, nbytes: int, cores: int | None = None, available: int | None = None) -> int:
    """The number of sets that may be started at once; at least 1. A set has `workers` workers and needs `nbytes`.

    Each worker needs a core for its import. All together may use MEMORY_SHARE of the available memory.
    """
    cores = cores_at_once() if cores is None else cores
    available = free_memory() if available is None else available
    return max(1, min(cores // max(1, workers), int(MEMORY_SHARE * available) // max(1, nbytes)))


class StartedAhead:
    """Sets of workers that are taken one after the other. The end of `with` closes all of them."""

    def __init__(self, at_once: int = 1, certain: int = 1) -> None:
        self._at_once = at_once
        self._certain = certain
        """The number of sets that are needed unless trials fail. Further sets are started when they are taken."""
        self._waiting: deque[list[SamplingWorker]] = deque()
        self._open = ExitStack()

    def __enter__(self) -> StartedAhead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def is_certain(self, number: int) -> bool:
        """Whether the set of this number is needed unless trials fail."""
        return number < self._certain

    def take(self, number: int, trials: Sequence[TrialSampling], make: StartSet) -> list[SamplingWorker]:
        """The started workers of the set of this number. Only those of their trials that are in `trials` are kept.

        If several sets were started at once, all have imported their frameworks and are stopped.
        """
        if not self._waiting:
            self._start(range(number, max(number + 1, min(number + self._at_once, self._certain))), make)
        workers = self._waiting.popleft()
        for worker in workers:
            worker.keep(trials)
        return [worker for worker in workers if worker.trials]

    def _start(self, numbers: range, make: StartSet) -> None:
        started = [list(make(number)) for number in numbers]
        for worker in (worker for workers in started for worker in workers):
            self._open.callback(worker.close)
            worker.start()
        # Intervals need SciPy. Its import takes a quarter of a second, so it must not happen between blocks.
        import_module("scipy.special")
        if len(started) > 1:
            for worker in (worker for workers in started for worker in workers):
                worker.import_framework()
        self._waiting.extend(started)
