"""The latency figures of a record, and the rows of its file of samples, computed from blocks of calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from rnnbench.measure import Block, LatencyPath, drift_of, interval_of, process_medians
from rnnbench.results import SAMPLES_CAP, STEPS_PER_S, Latency, Sampling, SideLatency
from rnnbench.stages import PathSamples


@dataclass(frozen=True)
class CallSize:
    """The work of one call: time steps, and streams side by side."""

    chunk: int
    batch: int = 1


def summarise(samples: PathSamples, size: CallSize, path: LatencyPath | None = None) -> Latency:
    """Seconds per call over all blocks of all processes, and the figures that `path` declares."""
    processes = samples.processes
    blocks = [block for of_process in processes for block in of_process]
    seconds = np.concatenate([block.seconds for block in blocks])
    middle = float(np.median(seconds))
    medians = process_medians(processes)
    figures = {
        figure.name: float(figure.compute(blocks, samples.setting, middle)) for figure in (path.figures if path else ())
    }
    if size.batch > 1:
        figures[STEPS_PER_S] = size.batch * size.chunk / middle
    return Latency(
        count=len(seconds),
        kept=min(len(seconds), SAMPLES_CAP),
        min=float(seconds.min()),
        median=middle,
        mean=float(seconds.mean()),
        p90=float(np.percentile(seconds, 90)),
        p99=float(np.percentile(seconds, 99)),
        max=float(seconds.max()),
        per_step=middle / size.chunk,
        process_medians=tuple(medians),
        interval=interval_of(medians),
        sampling=Sampling(
            stopped_by=samples.stopped_by,
            calls_per_sample=max(block.calls_per_sample for block in blocks),
            warmup=samples.warmup,
            blocks=len(blocks),
            disturbed_blocks=_disturbed(blocks),
            drift=drift_of([block.start for block in blocks], [float(np.median(block.seconds)) for block in blocks]),
        ),
        figures=figures,
    )


def side_latency(processes: Sequence[Sequence[Block]]) -> SideLatency:
    """A time that is measured beside a trial's latencies, such as the state's copy: the median of process medians."""
    latency = summarise(PathSamples(processes), CallSize(chunk=1))
    return SideLatency(seconds=median(latency.process_medians), interval=latency.interval, count=latency.count)


def sample_rows(processes: Sequence[Sequence[Block]]) -> np.ndarray:
    """Every sample as a row of `results.samples.SAMPLE_COLUMNS`, in the order of time [samples, columns]."""
    return np.concatenate(
        [
            np.column_stack(
                [
                    np.full(len(block.seconds), process),
                    np.full(len(block.seconds), index),
                    block.start + np.cumsum(block.seconds) * block.calls_per_sample,
                    block.seconds,
                    np.full(len(block.seconds), block.disturbed),
                ]
            )
            for process, blocks in enumerate(processes)
            for index, block in enumerate(blocks)
        ]
    )


def _disturbed(blocks: Sequence[Block]) -> int | None:
    if any(block.disturbance is None for block in blocks):
        return None
    return sum(block.disturbed for block in blocks)
