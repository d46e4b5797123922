"""What a call is made of: what it costs before any step, what a step adds, and what conversion and state cost."""

from __future__ import annotations

from collections.abc import Sequence

from rnnbench.measure.interval import half_width
from rnnbench.reports import units
from rnnbench.reports.entries import Entry
from rnnbench.reports.fits import CallCost, Estimate, by_chunk, fit_call
from rnnbench.reports.tables import Table, by_program
from rnnbench.results.timing import SideLatency


def anatomy_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: bound latency, and what the public path adds to it, as a call's cost and a step's."""
    rows = []
    for key, group in by_program(entry for entry in entries if entry.ranked and entry.streams).items():
        bound = by_chunk([(e.chunk, e.bound.median if e.bound else None) for e in group])
        public = by_chunk([(e.chunk, e.public.median if e.public else None) for e in group])
        fit = fit_call(bound)
        if fit is None:
            continue
        added = {chunk: public[chunk] - bound[chunk] for chunk in bound if chunk in public}
        conversion = fit_call(added, public)
        per_call, *steps = _costs(fit)
        rows.append(
            (
                *key,
                per_call,
                _beside([entry.measured.timing.dispatch_floor for entry in group if entry.measured]),
                _beside([entry.measured.timing.state_copy for entry in group if entry.measured]),
                *steps,
                *(_costs(conversion)[:2] if conversion else (units.MISSING,) * 2),
            )
        )
    return Table(
        "Anatomy of a call",
        (
            "program",
            "strategy",
            "per call",
            "dispatch floor",
            "state copy",
            "per step",
            "fit off by",
            "conversion/call",
            "conversion/step",
        ),
        tuple(rows),
        text=2,
        note="Bound latency as a sum: what a call costs before its first step (dispatch, and the state in and out) and "
        "what each step adds, fitted over three chunks or more, each weighing by its size. ±: half the interval at "
        "95 %. Dispatch floor: a call of the least program with the same state in the same runtime, measured in the "
        "same rounds: a counter of one unit, which adds one number. What a call costs above it is the network's own. "
        "State copy: the state's round trip through NumPy, which no call makes and a caller may. "
        "Fit off by: the largest distance of a chunk from the line; where it is large, steps do not cost alike. "
        "Conversion: what the public path adds.",
    )


def state_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: what keeping the state inside the program costs a call, chunk by chunk and as a whole."""
    groups = {(e.target, e.record.params.time, e.record.params.state, e.chunk): e for e in entries if e.ranked}
    chunks = sorted({chunk for *_, chunk in groups})
    rows = []
    for target, time in sorted({(target, time) for target, time, _, _ in groups}):
        pairs = {
            chunk: (groups[target, time, "stateful", chunk], groups[target, time, "stitched", chunk])
            for chunk in chunks
            if (target, time, "stateful", chunk) in groups and (target, time, "stitched", chunk) in groups
        }
        costs = {
            chunk: inside.bound.median - outside.bound.median
            for chunk, (inside, outside) in pairs.items()
            if inside.bound and outside.bound and inside.measured != outside.measured
        }
        if costs:
            rows.append((target, time, *(_signed(costs.get(chunk)) for chunk in chunks)))
    return Table(
        "What a stateful call costs beside a stitched one",
        ("program", "time", *(f"chunk {chunk}" for chunk in chunks)),
        tuple(rows),
        text=2,
        note="Bound latency of a stateful call less that of a stitched one; below zero, keeping the state inside is "
        "the cheaper. Differences within ± processes of either are none.",
    )


def _beside(figures: Sequence[SideLatency | None]) -> str:
    """What no chunk changes: the middle one of its trials' figures, with its interval between processes."""
    known = [(figure.seconds, figure.interval) for figure in figures if figure and figure.seconds is not None]
    if not known:
        return units.MISSING
    seconds, interval = sorted(known, key=lambda pair: pair[0])[len(known) // 2]
    return units.seconds(seconds) + (f" {units.percent(half_width(interval))}" if interval else "")


def _costs(fit: CallCost) -> tuple[str, str, str]:
    return _estimated(fit.per_call), _estimated(fit.per_step), f"{100 * fit.error:.1f} %"


def _estimated(estimate: Estimate) -> str:
    return f"{_signed(estimate.value)} ± {units.seconds(estimate.half_width)}"


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return units.MISSING
    return f"−{units.seconds(-seconds)}" if seconds < 0 else units.seconds(seconds)
