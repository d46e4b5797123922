"""Columns of the history's table `rows`: those of the flat row, with types, and a few that only the history has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rnnbench.measure import PATHS
from rnnbench.results import COLUMN_TYPES, COMPARED_PATHS, FIGURE, Record, Run, row

Cell = str | float | int | bool | list[float] | None


@dataclass(frozen=True)
class OwnColumn:
    """A column that the flat row does not have."""

    name: str
    type: str
    meaning: str
    value: Callable[[Record], Cell]


def _own_columns() -> Iterator[OwnColumn]:
    for path in PATHS:
        meaning = f"{path.capitalize()} latency: the median of each sampled process, in seconds."
        yield OwnColumn(process_medians(path), f"{FIGURE}[]", meaning, partial(_process_medians, path))


def reference_ratios(path: str) -> str:
    """Name of the column with the ratios to the reference of a backfill, of each pair of processes."""
    return f"{path}_reference_ratios"


def process_medians(path: str) -> str:
    """Name of the column with the process medians of a latency path."""
    return f"{path}_process_medians"


def _process_medians(path: str, record: Record) -> Cell:
    latency = record.latency(path)
    return list(latency.process_medians) if latency else None


OWN_COLUMNS = tuple(_own_columns())
RUN_ID = "run_id"
"""The run's identity in the history: the key between the tables `rows` and `runs`."""
NIGHT_ROWS = "(FROM rows SEMI JOIN (FROM runs WHERE release IS NULL) USING (run_id))"
"""In SQL, the rows of the runs that are no backfill's. A release belongs to no night."""
_DEVICE = "CASE WHEN device_software IS NOT TRUE AND device_driver IS NOT NULL THEN device_name END"
"""In SQL, the name of the GPU on which a trial ran. NULL for the processor, and for a device that it emulates."""
_OF_TRIAL = "PARTITION BY machine, trial ORDER BY started, run_id ROWS BETWEEN"
SERIES_DEVICE = (
    f"coalesce(last_value({_DEVICE} IGNORE NULLS) OVER ({_OF_TRIAL} UNBOUNDED PRECEDING AND CURRENT ROW), "
    f"first_value({_DEVICE} IGNORE NULLS) OVER ({_OF_TRIAL} CURRENT ROW AND UNBOUNDED FOLLOWING), '')"
)
"""In SQL, the device of a row's series: its own; where it is not known, that of the trial's rows before, or after it.

Empty for the processor, which is the machine's, and for a device that it emulates.
"""
ROW_TYPES: Mapping[str, str] = {
    RUN_ID: "VARCHAR",
    **COLUMN_TYPES,
    **{column.name: column.type for column in OWN_COLUMNS},
    **{reference_ratios(path): f"{FIGURE}[]" for path in COMPARED_PATHS},
}
"""Every column of the table `rows` with DuckDB's type."""


Ratios = Mapping[str, Mapping[str, Sequence[float]]]
"""By trial and latency path: a backfill's ratios to its reference, of each pair of processes."""


def rows_of(run: Run, run_id: str, ratios: Ratios) -> Iterator[dict[str, Cell]]:
    """The rows of a run, one at a time. `ratios` are those of a backfill."""
    for record in run.records:
        yield {
            RUN_ID: run_id,
            **row(record, run.info),
            **{column.name: column.value(record) for column in OWN_COLUMNS},
            **{reference_ratios(path): list(pairs) for path, pairs in ratios.get(record.trial, {}).items()},
        }
