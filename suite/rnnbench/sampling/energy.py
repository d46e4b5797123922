"""The energy of a trial's calls: one long block in each of its processes, between two readings of the device's counter.

The suite reads the counter, not the worker. All other workers are stopped meanwhile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import ENERGY, ENERGY_SAMPLES, PATHS, BlockPlan, EnergyCounter, EnergyUse, overall_median
from rnnbench.sampling.path_sampling import PathBlocks
from rnnbench.sampling.sampling_worker import SamplingWorker
from rnnbench.sampling.trial_sampling import TrialSampling

BOUND = PATHS["bound"]


class EnergyMeter:
    """The counter of one kind of device, opened when it is first needed."""

    def __init__(self, device: str) -> None:
        self._open = KINDS[device].open_energy
        self._counter: EnergyCounter | None = None

    def sample(self, worker: SamplingWorker, sampling: TrialSampling, say: Callable[[str], None]) -> None:
        """Measure one block of bound calls, if the case asks for energy and this process is among those measured."""
        if not sampling.asks_for_energy or len(sampling.energy) >= sampling.trial.measure.processes:
            return
        if ENERGY.key in sampling.unmeasured or self._open is None:
            return
        try:
            self._counter = self._counter or self._open()
            say("energy")
            self._sample(worker, sampling, self._counter)
        except UnmeasuredError as error:
            sampling.energy.clear()
            sampling.note_unmeasured({ENERGY.key: str(error)})

    def _sample(self, worker: SamplingWorker, sampling: TrialSampling, counter: EnergyCounter) -> None:
        blocks = sampling.paths.get(BOUND.name)
        if blocks is None or not any(blocks.processes):
            return
        stops, before, started = worker.stops, counter.read(), time.monotonic()
        block = worker.sample(sampling, blocks, _plan(blocks, counter.block_s), ENERGY.key)
        joules, seconds = counter.read() - before, time.monotonic() - started
        if block is not None and worker.stops == stops:  # Else the counter has the energy of that time too.
            sampling.energy.append(EnergyUse(joules, seconds, block.calls, counter.source, block.disturbed))


def _plan(blocks: PathBlocks, seconds: float) -> BlockPlan:
    """A block of this length with few samples, to keep the reply small."""
    call_s = overall_median(blocks.processes)
    calls = max(blocks.calls_per_sample, math.ceil(seconds / ENERGY_SAMPLES / call_s))
    return BlockPlan(seconds, calls, rewarm=False)
