"""The single samples of a run, one file for each trial and latency path: `samples/<digest>.<path>.npy`.

A digest follows the array: one flipped bit makes another time. NumPy reads the array alone. An earlier rnnbench wrote
none.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rnnbench.disk import any_damage_is_told, read_plain, write_bytes
from rnnbench.results.journal import unwritable
from rnnbench.results.reading import StoreError
from rnnbench.results.text import file_name
from rnnbench.results.timing import Latency

FOLDER = "samples"
DIGITS = 8
"""Hex digits at the end of a trial's id, which the name of its files begins with."""
SAMPLE_COLUMNS = ("process", "block", "end", "seconds", "disturbed")
"""Columns of a file: numbers of process and block; the sample's end in seconds since the epoch; seconds per call; and 1
where the block was disturbed, 0 elsewhere."""
SAMPLES_CAP = 4_000
"""Most samples that one file keeps. The figures of a record come from all samples."""
_DIGEST = b"sha256:"
"""What the digest of a file begins with."""


def samples_file(run: Path, trial: str, path: str) -> Path:
    """The file of a trial's samples on a latency path, in a run's folder. `trial` is its id, or its 8 hex digits."""
    return run / FOLDER / f"{file_name(trial[-DIGITS:])}.{file_name(path)}.npy"


def save_samples(run: Path, trial: str, path: str, rows: npt.NDArray[np.float64]) -> int:
    """Write `rows` [samples, SAMPLE_COLUMNS], in the order of time; more than SAMPLES_CAP are thinned evenly.

    Returns the number of rows that are kept. Raises StoreError where the file cannot be written.
    """
    if rows.ndim != 2 or rows.shape[1] != len(SAMPLE_COLUMNS):
        raise ValueError(f"rows of samples have the columns {', '.join(SAMPLE_COLUMNS)}, not the shape {rows.shape}")
    if len(rows) > SAMPLES_CAP:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLES_CAP).astype(int)]
    file = samples_file(run, trial, path)
    content = io.BytesIO()  # Of a full disk, NumPy says only that it has written less.
    np.save(content, rows)
    try:
        write_bytes(file, content.getvalue() + _digest_of(content.getvalue()))
    except OSError as error:
        raise unwritable(file, error) from error
    return len(rows)


def read_samples(run: Path, trial: str, path: str) -> npt.NDArray[np.float64]:
    """A trial's samples, by its id or its 8 hex digits, as rows of SAMPLE_COLUMNS. Raises StoreError."""
    file = samples_file(run, trial, path)
    try:
        with any_damage_is_told():  # A header may ask for any size.
            rows = _intact_rows(read_plain(file))
        if rows.ndim != 2 or rows.shape[1] != len(SAMPLE_COLUMNS) or rows.dtype.kind != "f":
            raise ValueError(f"it has the shape {rows.shape} of {rows.dtype}, not rows of {', '.join(SAMPLE_COLUMNS)}")
    except FileNotFoundError as error:
        raise StoreError(
            f"{file} does not exist: the path '{path}' of this trial was not sampled, it shares the measurement of "
            f"another trial (`same_as`), or the run's samples were not kept, or it was killed before it wrote them"
        ) from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{file}: cannot be read: {error}; restore the file, or run the trial again") from error
    return rows


def _intact_rows(content: bytes) -> npt.NDArray[np.float64]:
    """The array in a file with this content. Raises errors of any type, and ValueError where its digest is wrong."""
    stream = io.BytesIO(content)
    rows: npt.NDArray[np.float64] = np.load(stream)
    if not isinstance(rows, np.ndarray):
        raise ValueError(f"it is a {type(rows).__name__} and no array")
    end = stream.tell()
    if content[end:] not in (b"", _digest_of(content[:end])):
        raise ValueError("it is not as it was written")
    return rows


def _digest_of(array: bytes) -> bytes:
    return _DIGEST + hashlib.sha256(array).hexdigest().encode()


def other_samples(rows: npt.NDArray[np.float64], latency: Latency) -> str:
    """Why rows of samples are not those of a latency; empty where they can be.

    Where all samples were kept, the least and the greatest are the latency's own to the last bit.
    """
    if len(rows) != latency.kept:
        return f"{len(rows)} of them, and {latency.kept} were kept"
    if not len(rows):
        return ""
    seconds = rows[:, SAMPLE_COLUMNS.index("seconds")]
    low, high = float(seconds.min()), float(seconds.max())
    are_all = latency.kept == latency.count
    if (low, high) != (latency.min, latency.max) if are_all else not latency.min <= low <= high <= latency.max:
        return f"they take {low:.6g} to {high:.6g} s, and the record's {latency.min:.6g} to {latency.max:.6g} s"
    return ""
