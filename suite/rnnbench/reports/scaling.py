"""How the cost of a build grows with the chunk, and up to which chunk programs are built."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rnnbench.reports import units
from rnnbench.reports.escape import Markdown, code
from rnnbench.reports.tables import Table, by_program
from rnnbench.results import (
    TELLING_POINTS,
    Entry,
    OperationStage,
    Record,
    by_chunk,
    fit_growth,
    growth_word,
)

Cost = Callable[[Record], float | None]
Shown = Callable[[float], str]


def scaling_table(entries: Sequence[Entry]) -> Table:
    """The exponents with which build time, artifact, operations and memory of one workload grow with the chunk."""
    costs: tuple[tuple[Cost, Shown], ...] = (
        (_build_s, units.seconds),
        (_bytes_beside_weights, units.nbytes),
        (_operations, units.digits),
        (_build_memory, units.nbytes),
    )
    rows = []
    for key, group in by_program(entry for entry in entries if _was_tried(entry)).items():
        shown = [_growth(group, *cost) for cost in costs]
        if any(cell != units.MISSING for cell in shown):
            rows.append((*key, *shown, _largest(group)))
    return Table(
        "Growth with the chunk",
        ("program", "strategy", "build time", "artifact", "IR operations", "build memory", "largest chunk that built"),
        tuple(rows),
        text=7,
        note="The exponent p of chunk^p, fitted on logarithms over three chunks or more; ± is half its 95 % interval. "
        "A word follows where the interval allows only one. 'above': a fixed part below the growing part, where five "
        "chunks or more show it. Artifact: bytes without the weights. Operations: of the compiled program, all kinds "
        "together. Build memory: the peak minus the memory after the import.",
    )


def growth_answer(entries: Sequence[Entry]) -> Markdown | str:
    """A line for each word of growth, the steepest first; empty for a workload with too few chunks."""
    named: dict[str, list[tuple[float, str]]] = {}
    for (_, how), group in by_program(entry for entry in entries if _was_tried(entry)).items():
        seconds = by_chunk([(entry.chunk, _build_s(entry.record)) for entry in group])
        growth = fit_growth(seconds) if len(seconds) >= TELLING_POINTS else None
        if growth is not None:
            failed = f"; {_beyond(group)}" if _beyond(group) else ""
            text = Markdown("{} {} (chunk^{}{})").format(
                code(group[0].target), how, Markdown(f"{growth.exponent.value:z.2f}"), failed
            )
            named.setdefault(growth_word(growth.exponent), []).append((growth.exponent.value, text))
    lines = [
        Markdown("- **{}**: {}").format(word, Markdown(", ").join(text for _, text in sorted(programs, reverse=True)))
        for word, programs in sorted(named.items(), key=lambda item: -max(item[1])[0])
    ]
    return (
        Markdown("Growth of the build time with the chunk:\n\n{}").format(Markdown("\n").join(lines)) if lines else ""
    )


def _was_tried(entry: Entry) -> bool:
    return not entry.shares and entry.record.outcome not in ("unsupported", "unavailable")


def _growth(group: Sequence[Entry], cost: Cost, shown: Shown) -> str:
    growth = fit_growth(by_chunk([(entry.chunk, cost(entry.record)) for entry in group]))
    if growth is None:
        return units.MISSING
    exponent = growth.exponent
    fixed = f", above {shown(growth.fixed)}" if growth.fixed else ""
    return f"{exponent.value:z.2f} ± {exponent.half_width:.2f}, {growth_word(exponent)}{fixed}"


def _build_s(record: Record) -> float | None:
    return record.timing.build_s


def _bytes_beside_weights(record: Record) -> float | None:
    if record.artifact is None or record.floor is None:
        return None
    return record.artifact.nbytes - record.floor.weights


def _operations(record: Record) -> float | None:
    stages = record.artifact.operations if record.artifact else {}
    return sum(stages[OperationStage.COMPILED].values()) if OperationStage.COMPILED in stages else None


def _build_memory(record: Record) -> float | None:
    peak, imported = record.memory.build_peak, record.memory.imported
    return None if peak is None or imported is None else peak - imported


def _largest(group: Sequence[Entry]) -> str:
    """The largest chunk with an artifact, and the outcome of the next larger one, which has none."""
    built = _largest_built(group)
    failed = _beyond(group)
    return f"{built or 'none'}; {failed}" if failed else f"{built}, the largest requested"


def _largest_built(group: Sequence[Entry]) -> int:
    return max((entry.chunk for entry in group if entry.record.artifact is not None), default=0)


def _beyond(group: Sequence[Entry]) -> str:
    """The outcome of the smallest chunk larger than all that have an artifact; empty where there is none."""
    built = _largest_built(group)
    failed = next((entry for entry in group if entry.chunk > built), None)
    if failed is None:
        return ""
    record = failed.record
    return f"{failed.chunk} {record.outcome}{f' at {record.stage}' if record.stage else ''}"
