"""Inputs and expected outputs that a user gives as `.npz`: read within limits, and laid out as the suite has them.

An array has the file's own order of axes, with all steps of the stream along its axis of time. Without such an axis the
steps come first: [steps, …].
"""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.file_arrays import BATCH, TIME, FileArray
from rnnbench.model_files.file_bytes import read_bytes, unpacked
from rnnbench.outside_text import safe_text


class GivenArrays(BaseModel):
    """A `.npz` with an array for each of some inputs or outputs of a file."""

    model_config = ConfigDict(frozen=True)

    path: str
    sha256: str
    steps: int
    rows: int
    """Rows of the batch."""

    def laid(self, arrays: Sequence[FileArray]) -> np.ndarray:
        """All arrays side by side: [steps, rows, sum of sizes], float64. Raises ModelFileError."""
        whole = _read(self.path, self.sha256)
        parts = [_laid(whole[array.name], array, self.steps, self.rows) for array in arrays]
        return np.concatenate(parts, axis=2)


def given_arrays(key: str, path: Path, arrays: Sequence[FileArray]) -> GivenArrays:
    """The `.npz` at `path`, which must have just these arrays of a model file. Raises ModelFileError.

    `key` is the key of the case that names it.
    """
    try:
        return _read_arrays(path, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}", key) from error


def _read_arrays(path: Path, arrays: Sequence[FileArray]) -> GivenArrays:
    data = read_bytes(path)
    whole = _arrays_of(data)
    if whole.keys() != {array.name for array in arrays}:
        called, named = ", ".join(map(safe_text, whole)), ", ".join(array.name for array in arrays)
        raise ModelFileError(f"it has the arrays {called}, and should have {named}")
    ends = [_ends(array.name, whole[array.name].shape, array) for array in arrays]
    steps, rows = ({size for size in side if size is not None} for side in zip(*ends, strict=True))
    if len(steps) != 1 or len(rows) > 1:
        raise ModelFileError(f"its arrays have {sorted(steps)} steps and {sorted(rows)} rows; one number is needed")
    if not all(np.isfinite(whole[array.name].astype(np.float64)).all() for array in arrays):
        raise ModelFileError("it has infinities or values that are no numbers")
    return GivenArrays(
        path=str(path.resolve()),
        sha256=hashlib.sha256(data).hexdigest(),
        steps=steps.pop(),
        rows=rows.pop() if rows else 1,
    )


def _ends(name: str, shape: tuple[int, ...], array: FileArray) -> tuple[int, int | None]:
    """Steps and rows of an array, or None where it has no batch."""
    wanted = array.shape if TIME in array.shape else (TIME, *array.shape)
    fits = len(shape) == len(wanted) and all(
        size == dim if isinstance(dim, int) else size >= 1 for size, dim in zip(shape, wanted, strict=True)
    )
    if not fits:
        raise ModelFileError(f"{name} has the shape {list(shape)}, and should have [{', '.join(map(str, wanted))}]")
    sizes = dict(zip(map(str, wanted), shape, strict=True))
    return sizes[TIME], sizes.get(BATCH)


def _laid(values: np.ndarray, array: FileArray, steps: int, rows: int) -> np.ndarray:
    values = values.astype(np.float64)
    if TIME in array.shape:
        return array.from_file(values, steps, rows)
    return np.concatenate([array.from_file(step, 1, rows).reshape(1, rows, array.size) for step in values])


@cache
def _read(path: str, sha256: str) -> Mapping[str, np.ndarray]:
    data = read_bytes(Path(path))
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ModelFileError(f"{path} has changed since the case was read; run the command again")
    return _arrays_of(data)


def _arrays_of(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of an `.npz`. Pickles are refused, and no more is unpacked than is declared."""
    with parsing("it is no .npz file, or it is damaged"), zipfile.ZipFile(BytesIO(data)) as archive:
        entries = archive.infolist()
        if len(entries) > limits.ARRAYS or sum(entry.file_size for entry in entries) > limits.GIVEN_BYTES:
            most = limits.GIVEN_BYTES >> 20
            raise ModelFileError(f"it unpacks to more than {limits.ARRAYS} arrays or {most} MiB; that is not read")
        return {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    content = unpacked(archive, entry)
    whole, header = BytesIO(content), np.lib.format
    version = header.read_magic(whole)
    read = {(1, 0): header.read_array_header_1_0, (2, 0): header.read_array_header_2_0}.get(version)
    if read is None:
        raise ModelFileError(f"an array has the version {version} of NumPy's format, which is not read")
    shape, fortran, dtype = read(whole)
    if dtype.kind not in "fiub":
        raise ModelFileError(f"{safe_text(entry.filename, 60)} has elements of {dtype}; numbers are read, no objects")
    if math.prod(shape) * dtype.itemsize != len(content) - whole.tell():
        raise ModelFileError(f"{safe_text(entry.filename, 60)} does not have the bytes that its shape {shape} needs")
    return np.frombuffer(content, dtype, offset=whole.tell()).reshape(shape, order="F" if fortran else "C")
