"""From blocks of calls to the figures of a record, and to the file of samples beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnnbench.measure.course import Course, medians
from rnnbench.measure.interval import drift_of, interval_of
from rnnbench.measure.sampling import Block
from rnnbench.measure.warmup import WarmUp
from rnnbench.results.timing import STEPS_PER_S, Latency, Sampling, Warmup

SAMPLES_CAP = 4_000
"""Most samples of one trial and path that are kept in its file; percentiles are taken from all of them."""
COLUMNS = ("process", "block", "end", "seconds", "disturbed")
"""Of a file of samples: numbers of process and block, seconds since the epoch, seconds per call, and 1 where marked."""


def summarise(
    processes: Sequence[Sequence[Block]],
    chunk: int,
    batch: int = 1,
    warmups: Sequence[WarmUp] = (),
    course: Course | None = None,
) -> Latency:
    """Seconds per call over all blocks of all processes, and per time step of calls that have `chunk` of them.

    With the `warmups` that came before the blocks also how they began, and with their `course` why they ended.
    """
    blocks = [block for of_process in processes for block in of_process]
    every = np.concatenate([block.seconds for block in blocks])
    median = float(np.median(every))
    of_processes = medians(processes)
    figures = {STEPS_PER_S: batch * chunk / median} if batch > 1 else {}
    if course is not None and course.period is not None:
        figures |= {
            "period": course.period,
            "real_time_factor": median / course.period,
            "deadline_misses": sum(block.missed for block in blocks),
        }
    return Latency(
        count=len(every),
        kept=min(len(every), SAMPLES_CAP),
        min=float(every.min()),
        median=median,
        mean=float(every.mean()),
        p90=float(np.percentile(every, 90)),
        p99=float(np.percentile(every, 99)),
        max=float(every.max()),
        per_step=median / chunk,
        process_medians=tuple(of_processes),
        interval=interval_of(of_processes),
        sampling=Sampling(
            stopped_by=None if course is None else course.stopped_by,
            calls_per_sample=max(block.calls_per_sample for block in blocks),
            warmup=_warmup(warmups),
            blocks=len(blocks),
            disturbed_blocks=_disturbed(blocks),
            drift=drift_of([block.start for block in blocks], [float(np.median(block.seconds)) for block in blocks]),
        ),
        figures=figures,
    )


def _warmup(warmups: Sequence[WarmUp]) -> Warmup | None:
    if not any(warmup.windows for warmup in warmups):
        return None
    return Warmup(
        calls=sum(warmup.calls for warmup in warmups),
        seconds=sum(warmup.seconds for warmup in warmups),
        stationary=sum(warmup.at_rest for warmup in warmups),
    )


def _disturbed(blocks: Sequence[Block]) -> int | None:
    if any(block.disturbance is None for block in blocks):
        return None
    return sum(block.disturbed for block in blocks)


def save_samples(path: Path, processes: Sequence[Sequence[Block]]) -> None:
    """Write rows of COLUMNS, evenly thinned to SAMPLES_CAP, in time's order."""
    rows = np.concatenate(
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
    if len(rows) > SAMPLES_CAP:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLES_CAP).astype(int)]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, rows)
