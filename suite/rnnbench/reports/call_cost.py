"""What a call costs before its first step, what each step adds, and what conversion and state cost."""

from __future__ import annotations

from collections.abc import Sequence

from rnnbench.measure import half_width
from rnnbench.reports import units
from rnnbench.reports.tables import Table, by_program
from rnnbench.results import CallCost, Entry, Estimate, SideLatency, by_chunk, fit_call, judge_bound
from rnnbench.spelling import percents

CALL_COST_NOTE = (
    "Bound latency is split into a cost per call (dispatch, and the state in and out) and a cost per step. "
    "The split is a line fitted over three chunks or more, each weighted by its latency. ± is half the 95 % "
    "interval. Dispatch floor: a call of the smallest program in the same runtime with the same state, a counter "
    "of one unit, measured in the same rounds. State copy: the state's round trip through NumPy. No timed call "
    "makes it. Fit off by: the largest distance of a chunk from the line. Where it is large, not all steps cost "
    "the same. Conversion: what the public path adds."
)


def call_cost_table(entries: Sequence[Entry]) -> Table:
    """Bound latency of one workload, and what the public path adds to it, per call and per step."""
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
                _side_latency([entry.measured.timing.dispatch_floor for entry in group if entry.measured]),
                _side_latency([entry.measured.timing.state_copy for entry in group if entry.measured]),
                *steps,
                *(_costs(conversion)[:2] if conversion else (units.MISSING,) * 2),
            )
        )
    return Table(
        "Cost of a call",
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
        note=CALL_COST_NOTE,
    )


def stateful_cost_table(entries: Sequence[Entry]) -> Table:
    """What keeping the state inside the program adds to a call, by chunk, for one workload."""
    groups = {(e.target, _without_state(e), e.record.params.state, e.chunk): e for e in entries if e.ranked}
    chunks = sorted({chunk for *_, chunk in groups})
    rows = []
    for target, time in sorted({(target, time) for target, time, _, _ in groups}):
        pairs = {
            chunk: (groups[target, time, "stateful", chunk], groups[target, time, "stitched", chunk])
            for chunk in chunks
            if (target, time, "stateful", chunk) in groups and (target, time, "stitched", chunk) in groups
        }
        costs = {
            chunk: f"{_signed(inside.bound.median - outside.bound.median)} {judge_bound(inside, outside).verdict}"
            for chunk, (inside, outside) in pairs.items()
            if inside.bound and outside.bound and inside.measured != outside.measured
        }
        if costs:
            rows.append((target, time, *(costs.get(chunk, units.MISSING) for chunk in chunks)))
    return Table(
        "Cost of keeping the state inside the program",
        ("program", "time", *(f"chunk {chunk}" for chunk in chunks)),
        tuple(rows),
        text=2,
        note="Bound latency of a stateful call minus that of a stitched call. Below zero, keeping the state inside is "
        "cheaper. The verdict is that of the two strategies in 'Strategy pairs': a difference that is UNDECIDED may be "
        "noise, whatever its size, and one that is SAME is less than what matters.",
    )


def _without_state(entry: Entry) -> str:
    """Time, and the launch where it is no stream."""
    params = entry.record.params
    return params.time if params.launch == "stream" else f"{params.time} {params.launch}"


def _side_latency(figures: Sequence[SideLatency | None]) -> str:
    """The median over a program's trials, which no chunk changes, with its interval between processes."""
    measured = [(figure.seconds, figure.interval) for figure in figures if figure and figure.seconds is not None]
    if not measured:
        return units.MISSING
    seconds, interval = sorted(measured, key=lambda pair: pair[0])[len(measured) // 2]
    return units.seconds(seconds) + (f" {units.percent(half_width(interval))}" if interval else "")


def _costs(fit: CallCost) -> tuple[str, str, str]:
    return _estimated(fit.per_call), _estimated(fit.per_step), percents(fit.error)


def _estimated(estimate: Estimate) -> str:
    return f"{_signed(estimate.value)} ± {units.seconds(estimate.half_width)}"


def _signed(seconds: float) -> str:
    return f"-{units.seconds(-seconds)}" if seconds < 0 else units.seconds(seconds)
