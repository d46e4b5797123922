"""How the costs of building grow with the chunk, when a compile has paid for itself, and what still builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rnnbench.reports import units
from rnnbench.reports.entries import Entry
from rnnbench.reports.fits import by_chunk, calls_until_paid, fit_exponent, growth_word
from rnnbench.reports.tables import Table, by_program
from rnnbench.results.record import Record

Cost = Callable[[Record], float | None]


def scaling_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: the exponents with which build time, artifact, operations and memory grow with the chunk."""
    costs: tuple[Cost, ...] = (_build_s, _bytes_beside_weights, _operations, _build_memory)
    rows = []
    for key, group in by_program(entry for entry in entries if _was_tried(entry)).items():
        shown = [_growth(group, cost) for cost in costs]
        if any(cell != units.MISSING for cell in shown):
            rows.append((*key, *shown, _largest(group)))
    return Table(
        "Growth with the chunk",
        ("program", "strategy", "build time", "artifact", "IR operations", "build memory", "largest chunk that built"),
        tuple(rows),
        text=7,
        note="The exponent p of chunk^p, fitted on logarithms over three chunks or more, with half its interval at "
        "95 %, and the word for it where the interval allows but one. Artifact: bytes beside the weights. Operations: "
        "of the compiled form, all kinds together. Build memory: the peak beside what the import left.",
    )


def payoff_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: calls after which a faster program has paid for its build, beside the fastest to build."""
    built = [e for e in entries if e.ranked and not e.shares and e.record.timing.build_s is not None]
    chunks = sorted({entry.chunk for entry in built})
    cheapest = {chunk: min((e for e in built if e.chunk == chunk), key=_seconds_to_build) for chunk in chunks}
    rows = []
    for key, group in by_program(built).items():
        calls = {entry.chunk: _calls(entry, cheapest[entry.chunk]) for entry in group}
        rows.append((*key, *(calls.get(chunk, units.MISSING) for chunk in chunks)))
    return Table(
        "Calls until a compile pays off",
        ("program", "strategy", *(f"chunk {chunk}" for chunk in chunks)),
        tuple(rows),
        text=2,
        note="Against the program that builds fastest at that chunk ('builds fastest'), by bound latency. 'never': its "
        "calls are no faster.",
    )


def _was_tried(entry: Entry) -> bool:
    return not entry.shares and entry.record.outcome not in ("unsupported", "unavailable")


def _growth(group: Sequence[Entry], cost: Cost) -> str:
    exponent = fit_exponent(by_chunk([(entry.chunk, cost(entry.record)) for entry in group]))
    if exponent is None:
        return units.MISSING
    return f"{exponent.value:.2f} ± {exponent.half_width:.2f}, {growth_word(exponent)}"


def _build_s(record: Record) -> float | None:
    return record.timing.build_s


def _bytes_beside_weights(record: Record) -> float | None:
    if record.artifact is None or record.floor is None:
        return None
    return record.artifact.nbytes - record.floor.weights


def _operations(record: Record) -> float | None:
    stages = record.artifact.operations if record.artifact else {}
    return sum(stages["compiled"].values()) if "compiled" in stages else None


def _build_memory(record: Record) -> float | None:
    peak, imported = record.memory.build_peak, record.memory.imported
    return None if peak is None or imported is None else peak - imported


def _largest(group: Sequence[Entry]) -> str:
    """The largest chunk with an artifact; and what became of the smallest beyond it that has none."""
    built = [entry.chunk for entry in group if entry.record.artifact is not None]
    failed = [e for e in group if e.record.artifact is None and e.chunk > max(built, default=0)]
    text = str(max(built)) if built else "none"
    if not failed:
        return f"{text}, the largest asked for" if built else text
    return f"{text}; {failed[0].chunk} {failed[0].record.outcome}"


def _seconds_to_build(entry: Entry) -> float:
    assert entry.record.timing.build_s is not None, "only built entries are compared"
    return entry.record.timing.build_s


def _calls(entry: Entry, cheapest: Entry) -> str:
    if entry is cheapest:
        return "builds fastest"
    assert entry.bound is not None, "ranked entries have a bound latency"
    assert cheapest.bound is not None, "ranked entries have a bound latency"
    calls = calls_until_paid(
        _seconds_to_build(entry), entry.bound.median, _seconds_to_build(cheapest), cheapest.bound.median
    )
    return "never" if calls is None else f"{units.digits(calls)}"
