"""Figures that cannot be, taken out of a record before it is shown or compared. Each is named in a warning.

A record on disk may be damaged, or come from a program that measured nonsense. Examples are a latency of zero, below
zero, infinite or NaN, without process medians or at odds with them; sizes below zero; a chunk of no step. The rest of
the record is still worth showing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeVar, get_args

from rnnbench.measure import LEAST_S
from rnnbench.results.frozen_model import FrozenModel
from rnnbench.results.record import Record
from rnnbench.results.run import Run
from rnnbench.results.timing import Latency, Server, SideLatency, Streams, Timing
from rnnbench.spelling import listed

MOST_S = 1e9
"""Seconds that a call can take: more than 30 years are no measurement, and less than LEAST_S neither."""
MOST = 1 << 53
"""Largest size, count, chunk: the largest that a float holds exactly."""
NAMED = 3
"""Trials that a warning names."""
ROUNDING = 1e-9
"""How far a figure may lie beyond an end that it equals but for the rounding of both, as a share of that end."""
SIGNED = frozenset({"drift", "growth", "public_growth"})
RANGES = frozenset({"interval", "clock", "temperature", "power"})
"""Fields with the least and the greatest of a figure."""
IMPOSSIBLE = "zero, negative, infinite, NaN, empty, or at odds with its own medians"
UNMEASURED = "the figure in the record is impossible"
V = TypeVar("V", bound=FrozenModel)


def sound(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """The runs without impossible figures, and a warning for each kind of figure that was left out."""
    left_out: dict[str, list[str]] = {}
    kept: list[Run] = []
    warnings: list[str] = []
    for run in runs:
        if run.shards:
            shards, of_shards = sound(run.shards)
            kept.append(_with_shards(run, shards))
            warnings += of_shards
            continue
        records = []
        for record in run.records:
            if (wrong := _unusable(record)) is not None:
                left_out.setdefault(f"{wrong}; the trial was left out", []).append(record.trial)
                continue
            clean, names = without_impossible(record)
            records.append(clean)
            for name in names:
                left_out.setdefault(f"{name} is impossible ({IMPOSSIBLE})", []).append(record.trial)
        same = all(a is b for a, b in zip(records, run.records, strict=False)) and len(records) == len(run.records)
        kept.append(run if same else replace(run, records=tuple(records)))
    warnings += [
        f"damaged records: {what}: {listed(trials, NAMED)}; run these trials again" for what, trials in left_out.items()
    ]
    return kept, warnings


def _with_shards(run: Run, shards: list[Run]) -> Run:
    """A merged run with other records of its shards. A trial without a record is left out."""
    now = dict(zip(map(id, run.shards), shards, strict=True))
    records = (now[id(run.part_of(record))].by_trial.get(record.trial) for record in run.records)
    return replace(run, records=tuple(filter(None, records)), shards=tuple(shards))


def _unusable(record: Record) -> str | None:
    """What keeps a record from being shown at all."""
    params = record.params
    hidden = params.model.get("hidden", 0)
    if not 1 <= params.chunk <= MOST:
        return f"the chunk {params.chunk:.6g} is impossible" if abs(params.chunk) <= MOST else "the chunk is impossible"
    if isinstance(hidden, bool) or not isinstance(hidden, int) or not 0 <= hidden <= MOST:
        return "model.hidden is not a size"
    return None


def without_impossible(record: Record) -> tuple[Record, tuple[str, ...]]:
    """A record without impossible figures, and the names of those."""
    names: list[str] = []
    changes: dict[str, object] = {
        "timing": _clean_timing(record.timing, names),
        "memory": _clean(record.memory, "memory", names),
        "metrics": _finite(record.metrics, "metrics", names),
    }
    if record.device_state is not None:
        changes["device_state"] = _clean(record.device_state, "device_state", names)
    if record.floor is not None:
        changes["floor"] = _clean(record.floor, "floor", names)
    if record.common_trial is not None:
        changes["common_trial"] = _clean(record.common_trial, "anchor", names)
    if record.artifact is not None and not 0 <= record.artifact.nbytes <= MOST:
        names.append("artifact.nbytes")
        changes["artifact"] = None
    return (record.model_copy(update=changes), tuple(names)) if names else (record, ())


def _clean_timing(whole: Timing, names: list[str]) -> Timing:
    before = len(names)
    timing = _clean(whole, "timing", names)
    latencies = {}
    for path, latency in timing.latency.items():
        if _possible_latency(latency):
            latencies[path] = _clean_latency(latency, f"timing.latency.{path}", names)
        else:
            names.append(f"timing.latency.{path}")
    sides = {
        name: _clean_side(getattr(timing, name), f"timing.{name}", names) for name in ("state_copy", "dispatch_floor")
    }
    streams = timing.streams
    if streams is not None and not _possible_streams(streams):
        names.append("timing.streams")
        streams = None
    server = timing.server
    if server is not None and not _possible_server(server):
        names.append("timing.server")
        server = None
    changes = {"latency": latencies, "streams": streams, "server": server, **sides}
    return timing.model_copy(update=changes) if len(names) > before else whole


def _possible_streams(streams: Streams) -> bool:
    """Whether the figures of the scenario can be: times that frames can take, and counts that fit each other."""
    times = [streams.period, streams.median, streams.p99]
    times += [time for test in streams.tests for time in (test.median, test.p99)]
    seconds = [time for time in times if time is not None]
    counts = [(streams.frames, streams.missed), *((test.frames, test.missed) for test in streams.tests)]
    held = [streams.held_by_all, streams.held, streams.failed or MOST, *(test.streams for test in streams.tests)]
    return (
        all(LEAST_S <= value <= MOST_S for value in seconds)
        and all(1 <= frames <= MOST and 0 <= missed <= frames for frames, missed in counts)
        and all(0 <= value <= MOST for value in held)
        and streams.held_by_all <= streams.held
    )


def _possible_server(server: Server) -> bool:
    """Whether the figures of the scenario can be."""
    return (
        all(LEAST_S <= seconds <= MOST_S for seconds in (server.median, server.p99))
        and 0 < server.rate <= MOST
        and 1 <= server.requests <= MOST
        and 0 <= server.unserved <= MOST
        and 0 <= server.utilisation <= 1
    )


def _possible_latency(latency: Latency) -> bool:
    """Whether a latency can be one: it has process medians, and all its figures are times that a call can take."""
    per_call = (latency.median, latency.p90, latency.p99, *latency.process_medians)
    counts = (latency.count, latency.sampling.calls_per_sample)
    return (
        bool(latency.process_medians)
        and all(LEAST_S <= seconds <= MOST_S for seconds in per_call)
        and 0 < latency.per_step <= MOST_S
        and all(1 <= number <= MOST for number in counts)
        and _agrees(latency)
    )


def _agrees(latency: Latency) -> bool:
    """Whether the median of all samples lies among those of the processes, and the middle of these in the interval.

    A median of many sets together is never below or above that of every set.
    """
    least, most = min(latency.process_medians), max(latency.process_medians)
    low, high = latency.interval or (least, most)
    possible = 0 <= low <= high  # Otherwise the interval alone is left out.
    middle = statistics.geometric_mean(latency.process_medians)
    return _within(latency.median, least, most) and (not possible or _within(middle, low, high))


def _within(value: float, low: float, high: float) -> bool:
    return low * (1 - ROUNDING) <= value <= high * (1 + ROUNDING)


def _clean_latency(latency: Latency, name: str, names: list[str]) -> Latency:
    before = len(names)
    sampling = _clean(latency.sampling, f"{name}.sampling", names)
    figures = _finite(latency.figures, f"{name}.figures", names)
    cleaned = _clean(latency, name, names)
    return cleaned.model_copy(update={"sampling": sampling, "figures": figures}) if len(names) > before else latency


def _clean_side(side: SideLatency | None, name: str, names: list[str]) -> SideLatency | None:
    if side is None:
        return None
    cleaned = _clean(side, name, names)
    if cleaned.seconds is not None and cleaned.seconds < LEAST_S:
        names.append(f"{name}.seconds")
    if side.seconds is not None and (cleaned.seconds is None or cleaned.seconds < LEAST_S):
        return cleaned.model_copy(update={"seconds": None, "interval": None, "unmeasured": UNMEASURED})
    return cleaned


def _clean(value: V, where: str, names: list[str]) -> V:
    """The fields of `value` that may be None and hold an impossible figure, set to None."""
    changes: dict[str, object] = {}
    for name, held in value.__dict__.items():
        kind = type(held)
        if kind is float or kind is int:
            wrong = not _possible_figure(name, held)
        elif kind is tuple and name in RANGES:
            wrong = not (0 <= held[0] <= held[1])
        else:
            continue
        if wrong:
            names.append(f"{where}.{name}")
            changes[name] = None if name in _may_be_none(type(value)) else 0
    return value.model_copy(update=changes) if changes else value


@cache
def _may_be_none(model: type[FrozenModel]) -> frozenset[str]:
    """Names of the fields that may be None."""
    return frozenset(name for name, field in model.model_fields.items() if type(None) in get_args(field.annotation))


def _possible_figure(name: str, value: float) -> bool:
    return (value >= -MOST if name in SIGNED else value >= 0) and value <= MOST


def _finite(figures: Mapping[str, float], where: str, names: list[str]) -> dict[str, float]:
    names.extend(f"{where}.{name}" for name, value in figures.items() if not _fits(value))
    return {name: value for name, value in figures.items() if _fits(value)}


def _fits(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= MOST * 1e6
