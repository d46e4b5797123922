"""Rows as a DataFrame: of pandas where it is installed, or else of Polars."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rnnbench.optional import MissingExtraError


def data_frame(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Any:
    """The rows, each with a value for every column. Raises MissingExtraError where neither package is installed."""
    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(list(rows), columns=list(columns))
    if find_spec("polars") is not None:
        polars = import_module("polars")
        return polars.DataFrame(rows, schema=list(columns), orient="row", infer_schema_length=None)
    raise MissingExtraError("a DataFrame needs pandas or polars, and neither is installed; pip install pandas")
