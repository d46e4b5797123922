"""Columns of the flat row that have figures: builds, latencies, costs, memory and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from rnnbench.measure import METRICS, PATHS, LatencyPath
from rnnbench.results.artifact import OperationStage
from rnnbench.results.columns import Column, Value, field
from rnnbench.results.record import MemoryUse, Record
from rnnbench.results.run_info import RunInfo
from rnnbench.results.timing import STEPS_PER_S, Latency


def build_columns() -> Iterator[Column]:
    """Times of the build, the load and the first call, and what the program is."""
    for name, unit, meaning in (
        ("build_s", "s", "Time of a cold build, without imports; an earlier run's where `built` dates it."),
        ("build_import_s", "s", "Time of the imports that the build made."),
        ("build_origin", "text", "cold, or cached where the artifact was found ready."),
        ("built", "text", "When an earlier run built the artifact, UTC; empty where this run did."),
        ("load_s", "s", "Time to load the artifact, without imports."),
        ("load_import_s", "s", "Time of the imports of the load and of the first call."),
        ("open_s", "s", "Time to open a session, without imports."),
        ("bind_s", "s", "Time to bind a ring of 8 chunks, without imports."),
        ("first_call_s", "s", "Time of the first call."),
        ("close_s", "s", "Time to close the session."),
        ("tail_build_s", "s", "Time to build the program for a ragged rest."),
    ):
        yield Column(name, unit, meaning, field("timing", name))
    for column, name, unit, meaning in (
        ("origin", "origin", "text", "Who wrote the program: library, imported, authored or kernel."),
        ("math", "math", "text", "exact, or approximate activations."),
        ("lowered", "lowered", "text", "Form of the compiled program."),
        ("artifact_bytes", "nbytes", "bytes", "Size of the artifact, weights included."),
        ("artifact_digest", "digest", "text", "SHA-256 of the artifact."),
        ("source_digest", "source_digest", "text", "SHA-256 of the IR before the compiler."),
        ("hoisted", "hoisted", "steps", "Steps that share one reading of the input weights."),
    ):
        yield Column(column, unit, meaning, field("artifact", name))
    for stage, meaning in (
        (OperationStage.INPUT, "Operations in the IR that the compiler was given."),
        (OperationStage.COMPILED, "Operations in the compiled program."),
    ):
        yield Column(f"operations_{stage}", "count", meaning, partial(_operations, stage))


@dataclass(frozen=True)
class _LatencyFigure:
    """A column that each latency path has."""

    name: str
    unit: str
    meaning: str
    value: Callable[[Latency], Value]


_LATENCY_FIGURES = (
    _LatencyFigure("median_s", "s", "median per call", lambda x: x.median),
    _LatencyFigure("per_step_s", "s", "median per time step", lambda x: x.per_step),
    _LatencyFigure(
        "low_s", "s", "lower end of the median's 95 % interval", lambda x: x.interval[0] if x.interval else None
    ),
    _LatencyFigure("high_s", "s", "upper end of that interval", lambda x: x.interval[1] if x.interval else None),
    _LatencyFigure("min_s", "s", "smallest sample", lambda x: x.min),
    _LatencyFigure("mean_s", "s", "mean per call", lambda x: x.mean),
    _LatencyFigure("p90_s", "s", "90th percentile", lambda x: x.p90),
    _LatencyFigure("p99_s", "s", "99th percentile", lambda x: x.p99),
    _LatencyFigure("max_s", "s", "largest sample", lambda x: x.max),
    _LatencyFigure("samples", "count", "number of samples", lambda x: x.count),
    _LatencyFigure("processes", "count", "number of sampled processes", lambda x: len(x.process_medians)),
    _LatencyFigure("calls_per_sample", "count", "calls timed as one sample", lambda x: x.sampling.calls_per_sample),
    _LatencyFigure("stopped_by", "text", "what ended sampling: precision or budget", lambda x: x.sampling.stopped_by),
    _LatencyFigure("blocks", "count", "blocks of samples", lambda x: x.sampling.blocks),
    _LatencyFigure(
        "disturbed_blocks", "count", "blocks that other processes disturbed", lambda x: x.sampling.disturbed_blocks
    ),
    _LatencyFigure("drift", "ratio", "relative change from the first block to the last", lambda x: x.sampling.drift),
    _LatencyFigure(
        STEPS_PER_S,
        "1/s",
        "steps of all streams per second; batch above 1",
        lambda x: x.figures.get("steps_per_s"),
    ),
)


def latency_columns() -> Iterator[Column]:
    """The columns of each latency path."""
    for path in PATHS.values():
        yield from _latency_columns(path)


def _latency_columns(path: LatencyPath) -> Iterator[Column]:
    title = path.name.capitalize()
    for figure in _LATENCY_FIGURES:
        value = partial(_latency, path.name, figure.value)
        yield Column(f"{path.name}_{figure.name}", figure.unit, f"{title} latency: {figure.meaning}.", value)
    for own in path.figures:
        unit = {"seconds": "s"}.get(own.unit, own.unit)
        meaning = f"{title} latency: {own.title}. {own.meaning}".strip()
        yield Column(f"{path.name}_{own.name}", unit, meaning, partial(_latency_figure, path.name, own.name))


def scenario_columns() -> Iterator[Column]:
    """The columns of the scenarios that a case asks for."""
    streams = (
        ("period", "s", "Streams: time between two frames of a real-time stream."),
        ("held", "count", "Streams: how many were held; the median of the processes."),
        ("held_by_all", "count", "Streams: how many were held by every process."),
        ("failed", "count", "Streams: smallest number above what each process held."),
        ("frames", "count", "Streams: frames served with as many streams as were held."),
        ("missed", "count", "Streams: frames of these that missed their deadline."),
        ("median", "s", "Streams: median latency of these frames, from the due time to the last stream's result."),
        ("p99", "s", "Streams: 99th percentile of that."),
    )
    server = (
        ("rate", "1/s", "Server: requests that arrive at random, on average."),
        ("requests", "count", "Server: requests that were served."),
        ("unserved", "count", "Server: requests whose turn had not come when serving ended."),
        ("median", "s", "Server: median latency, from a request's arrival to its result."),
        ("p99", "s", "Server: 99th percentile of that."),
        ("utilisation", "ratio", "Server: share of the time in which the core was in calls."),
    )
    for scenario, figures in (("streams", streams), ("server", server)):
        for name, unit, meaning in figures:
            suffix = "_s" if unit == "s" else ""
            yield Column(f"{scenario}_{name}{suffix}", unit, meaning, field("timing", scenario, name))


METRIC_UNITS: Mapping[str, str] = {"seconds": "s", "joules": "J", "watts": "W"}


def cost_columns() -> Iterator[Column]:
    """The copy of the state, the dispatch floor, the latency floor, memory and the metrics."""
    yield Column(
        "step_seconds",
        "s",
        "Signal that a step of the network stands for, where it has a rate.",
        lambda r, i: r.step_seconds,
    )
    yield Column(
        "real_time_factor",
        "ratio",
        "Bound latency of a call over the length of the signal in it.",
        lambda r, i: r.real_time_factor,
    )
    yield Column(
        "state_copy_s",
        "s",
        "The state's round trip through NumPy.",
        field("timing", "state_copy", "seconds"),
    )
    yield Column(
        "dispatch_floor_s",
        "s",
        "A bound call of the smallest program in the same runtime.",
        field("timing", "dispatch_floor", "seconds"),
    )
    for column, name, unit, meaning in (
        ("floor_ratio", "ratio", "ratio", "Bound latency over the latency floor."),
        ("floor_s", "seconds", "s", "Latency floor: the least time to read and compute what a call must."),
        ("floor_limited_by", "limited_by", "text", "What the floor consists of: reading, arithmetic or launch."),
        ("floor_launch_s", "launch", "s", "Time to start a program that does nothing on the device, and wait for it."),
        ("floor_bytes", "nbytes", "bytes", "Bytes that a call must read."),
        ("floor_operations", "operations", "count", "Arithmetic operations of a call."),
        ("weights_bytes", "weights", "bytes", "Bytes of the weights."),
        ("weights_level", "level", "text", "Smallest cache that holds the weights, or memory."),
    ):
        yield Column(column, unit, meaning, field("floor", name))
    for name in MemoryUse.model_fields:
        calls = name.endswith("_calls")
        yield Column(f"memory_{name}", "count" if calls else "bytes", MEMORY_MEANS[name], field("memory", name))
    for metric in METRICS.values():
        unit = METRIC_UNITS.get(metric.unit, metric.unit)
        yield Column(f"metric_{metric.name}", unit, metric.meaning, partial(_metric, metric.name))


MEMORY_MEANS: Mapping[str, str] = {
    "harness": "Worker before the framework's import.",
    "imported": "Worker after the framework's import.",
    "build_peak": "Peak of the building process and of the largest of its children.",
    "run_peak": "Peak of the process that loads and runs the program.",
    "steady": "Process with the program loaded and called.",
    "growth": "What 1,000 bound calls add.",
    "growth_calls": "Bound calls over which growth was seen.",
    "public_growth": "What 1,000 public calls add.",
    "public_growth_calls": "Public calls over which growth was seen.",
    "device": "Process on its device with the program loaded and called, less an empty session.",
    "allocated": "Program on its device by the runtime's own count, loaded and called.",
    "allocated_peak": "Most of that at one time, from the start of the load.",
}


def _operations(stage: OperationStage, record: Record, info: RunInfo) -> Value:
    counts = record.artifact.operations.get(stage) if record.artifact else None
    return sum(counts.values()) if counts is not None else None


def _latency(path: str, figure: Callable[[Latency], Value], record: Record, info: RunInfo) -> Value:
    latency = record.latency(path)
    return figure(latency) if latency else None


def _latency_figure(path: str, name: str, record: Record, info: RunInfo) -> Value:
    latency = record.latency(path)
    return latency.figures.get(name) if latency else None


def _metric(name: str, record: Record, info: RunInfo) -> Value:
    return record.metrics.get(name)
