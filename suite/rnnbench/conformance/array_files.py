"""Arrays by name on disk: the files of reference trajectories and of exchanged states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rnnbench.disk import write_whole


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file as a whole or not at all. Raises OSError."""
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]  # no array is named as its option


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Raises OSError, ValueError, EOFError or BadZipFile where the file is damaged."""
    with np.load(path) as arrays:
        return dict(arrays)
