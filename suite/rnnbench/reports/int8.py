"""The tables of int8 beside float32: bytes, latency and its ratio to the floor, of the same program and strategy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rnnbench.reports import units
from rnnbench.reports.latencies import above_floor
from rnnbench.reports.tables import NOT_BELIEVED, Table, program, strategy
from rnnbench.results import Entry, View, size_label
from rnnbench.rnn import INT8_FORMS

FLOAT32 = "float32"
NOTE = (
    "× of float32: bound latency over that of float32 with the same program, strategy and chunk. × of floor counts one "
    "byte a weight for int8. Where products are of int8 (int8_dynamic, int8_static), the floor is that of reading "
    "alone: the probe measures no products of int8. Weights are quantised once by the suite, with one scale for each "
    "matrix."
)


def int8_tables(view: View) -> Iterator[Table]:
    """A table for the workloads that differ in size and number format alone, where one of them has int8 weights."""
    families: dict[str, list[Entry]] = {}
    for workload, entries in view.workloads.items():
        if workload.family.dtype in (FLOAT32, *INT8_FORMS):
            title = str(replace(workload.family, dtype="float32 and int8"))
            families.setdefault(title, []).extend(entry for entry in entries if entry.conforming and entry.bound)
    for title, entries in families.items():
        with_int8 = {_pairing_key(entry) for entry in entries if _dtype(entry) in INT8_FORMS}
        shown = sorted(
            (entry for entry in entries if _pairing_key(entry) in with_int8),
            key=lambda e: (*_pairing_key(e), _dtype(e) != FLOAT32, _dtype(e)),
        )
        if with_int8:
            yield Table(f"Int8 beside float32: {title}", COLUMNS, tuple(_rows(shown)), text=5, note=NOTE)


COLUMNS = (
    "size",
    "chunk",
    "program",
    "strategy",
    "number format",
    "artifact",
    "bound/call",
    "× of floor",
    "× of float32",
)


def _rows(entries: list[Entry]) -> Iterator[tuple[str, ...]]:
    of_float32 = {
        _pairing_key(entry): entry.bound.median for entry in entries if _dtype(entry) == FLOAT32 and entry.bound
    }
    for entry in entries:
        assert entry.bound is not None, "entries of the table have a bound latency"
        base = None if entry.not_believed else of_float32.get(_pairing_key(entry))
        yield (
            size_label(entry.workload.hidden),
            entry.chunk_label,
            program(entry),
            strategy(entry),
            _dtype(entry),
            units.nbytes(entry.artifact.nbytes if entry.artifact else None),
            units.seconds(entry.bound.median),
            NOT_BELIEVED if entry.not_believed else above_floor(entry),
            units.ratio(entry.bound.median / base) if base else units.MISSING,
        )


def _pairing_key(entry: Entry) -> tuple[int, int, str, str]:
    """What an int8 program and that of float32 have in common, in one family."""
    return entry.workload.hidden, entry.chunk, entry.target, entry.strategy


def _dtype(entry: Entry) -> str:
    return entry.record.params.dtype
