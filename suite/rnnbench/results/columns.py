"""Columns of the flat row that say what a record is of: its run, its trial, its outcome, its environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rnnbench.results.identity import fingerprint
from rnnbench.results.record import NO_ANSWER, Record, worst_rounding
from rnnbench.results.run_info import RunInfo
from rnnbench.results.versions import versions_text

Value = str | float | int | bool | None


@dataclass(frozen=True)
class Column:
    """One column of the flat row."""

    name: str
    unit: str
    """`s`, `bytes`, `count`, `ratio`, `text` and so on."""
    meaning: str
    value: Callable[[Record, RunInfo], Value]


def field(*path: str) -> Callable[[Record, RunInfo], Value]:
    """What reads the field at this place of a record: None where a part on the way is None.

    All fields that columns name are plain.
    """

    def read(record: Record, info: RunInfo) -> Value:
        value: Any = record
        for name in path:
            value = None if value is None else getattr(value, name)
        held: Value = value
        return held

    return read


def run_columns() -> Iterator[Column]:
    """The run of a record, and the machine that made it."""
    yield Column("run", "text", "Name of the run.", lambda r, i: i.run)
    yield Column(
        "shard",
        "text",
        "Shard of the plan that the run is, as 2/8. Empty: the run has the whole plan.",
        lambda r, i: str(i.shard) if i.shard else None,
    )
    yield Column("started", "time", "Start of the run, UTC, ISO 8601.", lambda r, i: i.started)
    yield Column("rnnbench", "text", "Version of rnnbench that made the record.", lambda r, i: r.rnnbench)
    yield Column(
        "machine",
        "text",
        "Fingerprint of the machine. Compare latencies of equal fingerprints only.",
        lambda r, i: fingerprint(i.machine_of(r)),
    )
    yield Column(
        "node",
        "text",
        "Node of a cluster that measured the trial. Empty: the machine of the run.",
        lambda r, i: r.node or None,
    )
    for name, unit, meaning in (
        ("cpu", "text", "Model of the processor."),
        ("cores", "count", "Cores of the machine."),
        ("usable_cores", "count", "Cores that the run could use."),
        ("memory", "bytes", "Memory of the machine."),
        ("governor", "text", "Frequency governor of the processor, where the kernel tells."),
        ("kernel", "text", "Version of the kernel."),
        ("system", "text", "Operating system."),
        ("python", "text", "Version of Python."),
    ):
        yield Column(f"machine_{name}", unit, meaning, partial(_machine, name))
    yield Column(
        "versions",
        "text",
        "Packages of the backend with their versions.",
        lambda r, i: versions_text(r.version) or None,
    )


MODEL_PARAMETERS: Mapping[str, tuple[str, str]] = {
    "network": ("text", "Name of the network; none for a stack of cells."),
    "cell": ("text", "Kind of cell: lstm, gru, rnn or counter."),
    "input": ("count", "Size of the input."),
    "hidden": ("count", "Size of the hidden state."),
    "layers": ("count", "Layers."),
    "projection": ("count", "Size of the projection of an LSTM."),
    "direction": ("text", "forward, reverse or bidirectional."),
    "bias": ("flag", "Whether there are biases."),
    "reset_after": ("flag", "Whether a GRU's reset gate is applied after the product."),
    "activation": ("text", "Activation of the candidate and of the output."),
    "recurrent_activation": ("text", "Activation of the gates."),
    "clip": ("number", "Bound of the inputs of the activations, as in ONNX."),
    "cell_clip": ("number", "Bound of the cell state, as in TFLite."),
    "gain": ("number", "Factor of the drawn weights."),
}


def trial_columns() -> Iterator[Column]:
    """The trial: its id, its target and its parameters."""
    yield Column("trial", "text", "Id of the trial. It ends in 8 hex digits of all parameters.", lambda r, i: r.trial)
    yield Column("case", "text", "Name of the case.", lambda r, i: r.case)
    yield Column("backend", "text", "Backend.", lambda r, i: r.backend)
    yield Column("route", "text", "Route into the backend.", lambda r, i: r.route)
    yield Column("baseline", "flag", "Whether the backend is the baseline.", lambda r, i: r.baseline)
    yield Column("model", "json", "All parameters of the model.", lambda r, i: json.dumps(r.params.model))
    for name, (unit, meaning) in MODEL_PARAMETERS.items():
        yield Column(f"model_{name}", unit, f"{meaning} Empty: the default.", partial(_model, name))
    yield Column(
        "pinned",
        "text",
        "Requirements of an anchor's own environment; empty for others.",
        lambda r, i: r.params.pinned or None,
    )
    for name, unit, meaning in (
        ("time", "text", "How time advances in one call: fused, looped, unrolled, unrolled:k, parallel, chunked:k."),
        ("state", "text", "Who keeps the state: stitched (the caller), stateful (the program) or none."),
        ("chunk", "steps", "Time steps per call."),
        ("launch", "text", "stream, or graph where a call replays work that was recorded once."),
        ("steps", "steps", "Time steps of the workload."),
        ("batch", "count", "Streams in one call."),
        ("dtype", "text", "Number format."),
        ("device", "text", "Device."),
        ("threads", "count", "Threads that the case requests."),
        ("seed", "number", "Seed of weights and inputs."),
        ("lengths", "text", "full, or ragged where each row of the batch has its own length."),
    ):
        yield Column(name, unit, meaning, field("params", name))


def device_columns() -> Iterator[Column]:
    """The device, and its state while the trial was sampled."""
    for name, unit, meaning in (
        ("name", "text", "Name of the device, as its driver tells it; empty in records of schema 1 and 2."),
        ("driver", "text", "Driver of the device, with its version; empty for the processor."),
        ("capability", "text", "What programs are compiled for: an instruction set, a version, a compute capability."),
        ("memory", "bytes", "Memory of the device, where the driver tells it."),
        ("software", "flag", "Whether the processor emulated the device. Its times are never ranked."),
    ):
        yield Column(f"device_{name}", unit, meaning, partial(_device, name))
    for name, unit, meaning in (
        ("clock", "Hz", "clock of the device's multiprocessors around blocks."),
        ("temperature", "°C", "temperature of the device around blocks."),
        ("power", "W", "power of the device around blocks."),
    ):
        for end, (word, extreme) in enumerate((("low", "Least"), ("high", "Greatest"))):
            yield Column(f"device_{name}_{word}", unit, f"{extreme} {meaning}", partial(_device_range, name, end))
    for name, unit, meaning in (
        ("moved_blocks", "count", "Blocks from whose beginning to whose end the device's clock changed."),
        ("throttled_blocks", "count", "Blocks in which the device's clock was held down."),
        ("throttled", "text", "Why it was."),
        ("shared_blocks", "count", "Blocks during which other processes were on the device."),
        ("others", "text", "Those processes."),
    ):
        yield Column(f"device_{name}", unit, meaning, partial(_device_state, name))


def outcome_columns() -> Iterator[Column]:
    """How the trial ended, and what was found."""
    yield Column("support", "text", "native, emulated or unsupported.", lambda r, i: r.support.level)
    yield Column("upstream", "text", "The backend's issue.", lambda r, i: r.support.upstream or None)
    yield Column("outcome", "text", "ok, or how the trial ended.", lambda r, i: r.outcome)
    yield Column("stage", "text", "Stage at which it ended, if not ok.", lambda r, i: r.stage or None)
    yield Column("reason", "text", "Why it ended there.", lambda r, i: r.reason or None)
    yield Column("believed", "flag", "Whether its figures are believed.", lambda r, i: not r.not_believed)
    yield Column(
        "findings",
        "text",
        "What the suite found, a sentence each.",
        lambda r, i: "; ".join(finding.detail for finding in r.findings) or None,
    )
    yield Column("same_as", "text", "Trial of the same program, whose measurement this is.", lambda r, i: r.same_as)
    yield Column("checks", "count", "Conformance checks that apply and ran.", lambda r, i: len(_checks(r)))
    yield Column(
        "checked",
        "text",
        "When an earlier run made the checks, but for `timed`, UTC; empty where this run did.",
        lambda r, i: r.checked or None,
    )
    yield Column("checks_failed", "count", "Checks that failed.", lambda r, i: len(r.failed_checks))
    yield Column("failed_checks", "text", "Their names.", lambda r, i: ", ".join(r.failed_checks) or None)
    yield Column(
        "too_short_checks",
        "text",
        "Checks whose time was over too soon to mean anything.",
        lambda r, i: ", ".join(r.too_short_checks) or None,
    )
    yield Column(
        "expected_failures",
        "text",
        "Expected failures that happened.",
        lambda r, i: ", ".join(f.what for f in r.expected_failures if f.verdict == "failed") or None,
    )
    yield Column(
        "worst_rounding",
        "ratio",
        "Largest error, in rounding errors expected at that step.",
        lambda r, i: worst_rounding(r.conformance.values()),
    )


def environment_columns() -> Iterator[Column]:
    """The environment of the worker that was sampled."""
    yield Column("threads_seen", "count", "Threads of the worker's process.", lambda r, i: r.environment.threads_seen)
    yield Column(
        "threads_busy",
        "count",
        "Threads that used CPU time. Empty where the kernel saw none run.",
        lambda r, i: r.environment.threads_busy,
    )
    yield Column(
        "affinity",
        "text",
        "Cores of the worker's process.",
        lambda r, i: ",".join(map(str, r.environment.affinity)) or None,
    )
    yield Column("load", "number", "One-minute load average when sampling ended.", lambda r, i: r.environment.load)
    for column, name, unit, meaning in (
        ("anchor", "trial", "text", "Trial common to all sampling groups, where there were several."),
        ("anchor_group", "group", "number", "Group in which the trial was sampled."),
        ("anchor_bound_s", "bound", "s", "Bound latency of the common trial in that group."),
    ):
        yield Column(column, unit, meaning, field("common_trial", name))


def _machine(name: str, record: Record, info: RunInfo) -> Value:
    value = info.machine_of(record).get(name)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _model(name: str, record: Record, info: RunInfo) -> Value:
    value = record.params.model.get(name)
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def _device(name: str, record: Record, info: RunInfo) -> Value:
    value: Value = getattr(record.device, name) if record.device else None
    return None if value == "" else value


def _device_range(name: str, end: int, record: Record, info: RunInfo) -> Value:
    extremes = getattr(record.device_state, name) if record.device_state else None
    held: Value = extremes[end] if extremes else None
    return held


def _device_state(name: str, record: Record, info: RunInfo) -> Value:
    value = getattr(record.device_state, name) if record.device_state else None
    held: Value = ", ".join(value) or None if isinstance(value, tuple) else value
    return held


def _checks(record: Record) -> list[str]:
    return [name for name, check in record.conformance.items() if check.verdict not in NO_ANSWER]
