"""Arrays by name on disk: the files of reference trajectories and of exchanged states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rnnbench.disk import open_plain, write_whole

NAME = "name of this file"
"""What a file has beside its arrays. Names of trajectories have a digest of all that they depend on."""


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file as a whole or not at all. Raises OSError."""
    named = {NAME: np.array(path.name), **arrays}
    write_whole(path, lambda file: np.savez(file, **named))  # type: ignore[arg-type]  # no array is named as its option


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Raises OSError, KeyError, ValueError, EOFError or BadZipFile where the file is damaged, or has another name."""
    with open_plain(path) as file, np.load(file) as archive:
        arrays = dict(archive)
    if str(arrays.pop(NAME)) != path.name:
        raise ValueError(f"{path} was written under another name")
    return arrays
