"""The history: rows of many runs, and what changed from one to the next.

    store, entry, columns, database      `History`: runs are added once, rows are kept in Parquet, and queried by SQL

The package reads `rnnbench.results` and knows no pipeline. DuckDB comes with the extra `history`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.history.database import Table
    from rnnbench.history.entry import RunEntry
    from rnnbench.history.store import Addition, History
    from rnnbench.history.text import csv_lines, plain_table

_NAMES = {
    "database": ("Table",),
    "entry": ("RunEntry",),
    "store": (
        "Addition",
        "History",
    ),
    "text": (
        "csv_lines",
        "plain_table",
    ),
}
__all__ = [
    "Addition",
    "History",
    "RunEntry",
    "Table",
    "csv_lines",
    "plain_table",
]
__getattr__ = lazy_names(__name__, _NAMES)
