"""Weights in the layout that NumPy's products read, and the file that keeps them for a second build."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.disk import write_whole
from rnnbench.rnn import Layer, Weights

FIELDS = [field.name for field in fields(Layer) if field.name != "ranges"]
"""The fields of a layer that are arrays."""


def by_name(weights: Weights) -> dict[str, np.ndarray]:
    """Every weight array: of a stack by the row of the state and its field (`0.w_ih`), of others by its name."""
    of_rows = {f"{row}.{name}": getattr(layer, name) for row, layer in enumerate(weights.layers) for name in FIELDS}
    return {key: array for key, array in {**weights.arrays, **of_rows}.items() if array is not None}


def for_products(weights: Weights, dtype: np.dtype[np.generic]) -> Weights:
    """The weights in `dtype` and in Fortran's order: the transposes that a cell multiplies by are then contiguous."""
    return _weights({key: array.astype(dtype, order="F") for key, array in by_name(weights).items()})


def save_weights(path: Path, weights: Weights) -> None:
    """The file is written as a whole or not at all: another process may read or write it at the same time."""
    arrays: dict[str, Any] = by_name(weights)
    write_whole(path, lambda file: np.savez(file, **arrays))


def load_weights(path: Path) -> Weights:
    with np.load(path) as archive:
        return _weights(dict(archive))


def _weights(arrays: dict[str, np.ndarray]) -> Weights:
    rows: dict[str, dict[str, Any]] = {}
    named = {}
    for key, array in arrays.items():
        row, dot, name = key.partition(".")
        if dot:  # of a stack
            rows.setdefault(row, dict.fromkeys(FIELDS))[name] = array
        else:
            named[key] = array
    return Weights(tuple(Layer(**row) for row in rows.values()), named)
