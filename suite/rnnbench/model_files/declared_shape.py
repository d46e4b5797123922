"""An array that is given to a file against the shape that the file declares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnbench.model_files.description import Dim


def require_shape(name: str, declared: Sequence[Dim], array: np.ndarray) -> None:
    """Raises ValueError if the array does not have this shape. A size that is no number may be any."""
    fits = len(declared) == array.ndim and all(
        size == actual or not isinstance(size, int) for size, actual in zip(declared, array.shape, strict=True)
    )
    if not fits:
        shown = [size if isinstance(size, int) else "any" for size in declared]
        raise ValueError(f"{name}: expected the shape {shown}, got {list(array.shape)}")
