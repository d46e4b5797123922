"""Figures that cannot be, taken out of a record before it is shown or compared. Each is named in a warning.

A record on disk may be damaged, or come from a program that measured nonsense: a latency of zero, below zero, infinite
or NaN, without process medians; sizes below zero; a chunk of no step. The rest of the record is still worth showing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeVar, get_args

from rnnbench.results.model import FrozenModel
from rnnbench.results.record import Record
from rnnbench.results.store import Run
from rnnbench.results.timing import Latency, SideLatency

LEAST_S, MOST_S = 1e-12, 1e9
"""Seconds that a call can take: less than a thousandth of a clock tick, or more than 30 years, is no measurement."""
MOST = 1 << 53
"""Largest size, count, chunk: the largest that a float holds exactly."""
NAMED = 3
"""Trials that a warning names."""
SIGNED = frozenset({"drift", "growth", "public_growth"})
UNMEASURED = "the figure in the record is impossible"
V = TypeVar("V", bound=FrozenModel)


def sound(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """The runs without impossible figures, and a warning for each kind of figure that was left out."""
    left_out: dict[str, list[str]] = {}
    kept = []
    for run in runs:
        records = []
        for record in run.records:
            if (wrong := _unusable(record)) is not None:
                left_out.setdefault(f"{wrong}; the trial was left out", []).append(record.trial)
                continue
            clean, names = without_impossible(record)
            records.append(clean)
            for name in names:
                left_out.setdefault(f"{name} is impossible (zero, negative, infinite, NaN or empty)", []).append(
                    record.trial
                )
        same = all(a is b for a, b in zip(records, run.records, strict=False)) and len(records) == len(run.records)
        kept.append(run if same else replace(run, records=tuple(records)))
    return kept, [_warning(what, trials) for what, trials in left_out.items()]


def _warning(what: str, trials: list[str]) -> str:
    more = f" and {len(trials) - NAMED} more" if len(trials) > NAMED else ""
    return f"damaged records: {what}: {', '.join(trials[:NAMED])}{more}; run these trials again"


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
    timing = _clean(record.timing, "timing", names)
    latencies = {}
    for path, latency in timing.latency.items():
        if possible(latency):
            latencies[path] = _clean_latency(latency, f"timing.latency.{path}", names)
        else:
            names.append(f"timing.latency.{path}")
    sides = {
        name: _clean_side(getattr(timing, name), f"timing.{name}", names) for name in ("state_copy", "dispatch_floor")
    }
    changes: dict[str, object] = {
        "timing": timing.model_copy(update={"latency": latencies, **sides}),
        "memory": _clean(record.memory, "memory", names),
        "metrics": _finite(record.metrics, "metrics", names),
    }
    if record.floor is not None:
        changes["floor"] = _clean(record.floor, "floor", names)
    if record.anchor is not None:
        changes["anchor"] = _clean(record.anchor, "anchor", names)
    if record.artifact is not None and not 0 <= record.artifact.nbytes <= MOST:
        names.append("artifact.nbytes")
        changes["artifact"] = None
    return (record.model_copy(update=changes), tuple(names)) if names else (record, ())


def possible(latency: Latency) -> bool:
    """Whether a latency can be one: it has process medians, and all its figures are times that a call can take."""
    figures = (latency.median, latency.p90, latency.p99, latency.per_step, *latency.process_medians)
    counts = (latency.count, latency.sampling.calls_per_sample)
    return (
        bool(latency.process_medians)
        and all(LEAST_S <= value <= MOST_S for value in (*figures[:3], *figures[4:]))
        and 0 < latency.per_step <= MOST_S
        and all(1 <= value <= MOST for value in counts)
    )


def _clean_latency(latency: Latency, name: str, names: list[str]) -> Latency:
    sampling = _clean(latency.sampling, f"{name}.sampling", names)
    figures = _finite(latency.figures, f"{name}.figures", names)
    cleaned = _clean(latency, name, names)
    return cleaned.model_copy(update={"sampling": sampling, "figures": figures})


def _clean_side(side: SideLatency | None, name: str, names: list[str]) -> SideLatency | None:
    if side is None:
        return None
    cleaned = _clean(side, name, names)
    if side.seconds is not None and (cleaned.seconds is None or not side.seconds >= LEAST_S):
        return cleaned.model_copy(update={"seconds": None, "interval": None, "unmeasured": UNMEASURED})
    return cleaned


def _clean(value: V, where: str, names: list[str]) -> V:
    """The fields of `value` that may be None and hold an impossible figure, set to None."""
    changes: dict[str, object] = {}
    for name, may_be_none in _fields_of(type(value)):
        held = getattr(value, name)
        if isinstance(held, tuple) and name == "interval":
            wrong = not (0 <= held[0] <= held[1])
        elif isinstance(held, int | float) and not isinstance(held, bool):
            wrong = not _possible_figure(name, held)
        else:
            continue
        if wrong:
            names.append(f"{where}.{name}")
            changes[name] = None if may_be_none else 0
    return value.model_copy(update=changes) if changes else value


@cache
def _fields_of(model: type[FrozenModel]) -> tuple[tuple[str, bool], ...]:
    """Names of the fields, and whether each may be None."""
    return tuple((name, type(None) in get_args(field.annotation)) for name, field in model.model_fields.items())


def _possible_figure(name: str, value: float) -> bool:
    return (value >= -MOST if name in SIGNED else value >= 0) and value <= MOST


def _finite(figures: Mapping[str, float], where: str, names: list[str]) -> dict[str, float]:
    names.extend(f"{where}.{name}" for name, value in figures.items() if not _fits(value))
    return {name: value for name, value in figures.items() if _fits(value)}


def _fits(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= MOST * 1e6
