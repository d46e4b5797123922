"""The figures of scenarios in a record, from the samples of the trial's processes."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median_low

import numpy as np

from rnnbench.measure import FRAMES
from rnnbench.results import Server, Streams, StreamTest
from rnnbench.stages import ServerSamples, StreamSamples


def streams_figures(samples: StreamSamples) -> Streams:
    """The figures of the searches of all processes."""
    processes = samples.processes
    held = [process.held for process in processes]
    failed = [process.failed for process in processes if process.failed is not None]
    deciding = [process.deciding.served for process in processes if process.deciding is not None]
    latencies = np.concatenate([served.latencies for served in deciding])
    return Streams(
        period=samples.period,
        held=median_low(held),
        held_by_all=min(held),
        failed=max(failed) if len(failed) == len(processes) else None,
        frames=len(latencies),
        missed=sum(served.missed for served in deciding),
        median=float(np.median(latencies)),
        p99=float(np.percentile(latencies, 99)) if len(latencies) >= FRAMES else None,
        tests=tuple(_tests(samples)),
    )


def server_figures(samples: ServerSamples) -> Server:
    """The figures of the requests to all processes."""
    latencies = np.concatenate([served.latencies for served in samples.processes])
    return Server(
        rate=samples.rate,
        requests=len(latencies),
        unserved=sum(served.due - served.done for served in samples.processes),
        median=float(np.median(latencies)),
        p99=float(np.percentile(latencies, 99)),
        utilisation=sum(process.busy for process in samples.processes)
        / sum(process.elapsed for process in samples.processes),
    )


def _tests(samples: StreamSamples) -> Iterator[StreamTest]:
    for number, process in enumerate(samples.processes):
        for load in process.tested:
            seconds = load.served.latencies
            yield StreamTest(
                process=number,
                streams=load.streams,
                frames=load.served.done,
                missed=load.served.missed,
                median=float(np.median(seconds)),
                p99=float(np.percentile(seconds, 99)) if len(seconds) >= FRAMES else None,
            )
