"""The flat row: a record with its run's facts as one row of a table, with documented columns.

`docs/results.md` has the table of columns. Latency paths and metrics have theirs from `measure/paths.py` and
`measure/metrics.py`, so that a new one has its columns without a change here.
"""

from __future__ import annotations

from rnnbench.results.columns import (
    Column,
    Value,
    device_columns,
    environment_columns,
    outcome_columns,
    run_columns,
    trial_columns,
)
from rnnbench.results.figure_columns import build_columns, cost_columns, latency_columns, scenario_columns
from rnnbench.results.record import Record
from rnnbench.results.run_info import RunInfo
from rnnbench.results.text import writable

Row = dict[str, Value]
COLUMNS: tuple[Column, ...] = (
    *run_columns(),
    *trial_columns(),
    *device_columns(),
    *outcome_columns(),
    *build_columns(),
    *latency_columns(),
    *scenario_columns(),
    *cost_columns(),
    *environment_columns(),
)
"""Every column of the flat row, in order."""


def row(record: Record, info: RunInfo) -> Row:
    """A record of the run `info` as a row: a value for each of COLUMNS, None where the record has none."""
    values = {column.name: column.value(record, info) for column in COLUMNS}
    return {name: writable(value) if isinstance(value, str) else value for name, value in values.items()}


def columns_table() -> str:
    """The table of columns in `docs/results.md`, in Markdown."""
    lines = [f"| `{column.name}` | {column.unit} | {column.meaning} |" for column in COLUMNS]
    return "\n".join(("| column | unit | meaning |", "|---|---|---|", *lines))
