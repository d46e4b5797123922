"""Reading a `.keras` file within limits, without Keras: a zip with layers as JSON and weights as HDF5.

HDF5 can name other files (external links, external storage, virtual datasets) and unpack to any size (filters). Weights
that do are refused: each must lie in this file, as many bytes as its shape calls for.
Source: keras/src/saving/saving_lib.py (Keras 3.15).
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.optional import require
from rnnbench.outside_text import describe_error, safe_text

EXTRA = "tensorflow"
CONFIG, WEIGHTS, METADATA = "config.json", "model.weights.h5", "metadata.json"


@dataclass(frozen=True)
class KerasFile:
    config: dict[str, Any]
    """The layers as the file has them. `layers.safe_config` says which of them are read."""
    weights: bytes
    """HDF5."""
    elements: int
    """Of all weights together."""
    weight_bytes: int
    producer: str


def read_keras(path: Path) -> KerasFile:
    """The file. Raises ModelFileError, and MissingExtraError without h5py, which Keras installs."""
    data = read_bytes(path)
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return _file(archive)
    except (ModelFileError, MemoryError, ImportError):
        raise
    except Exception as error:  # zipfile, json and h5py raise what they like for bytes that are wrong
        raise ModelFileError(f"it is no .keras file, or it is damaged: {describe_error(error)[:200]}") from error


def _file(archive: zipfile.ZipFile) -> KerasFile:
    entries = {entry.filename: entry for entry in archive.infolist()}
    if missing := [name for name in (CONFIG, WEIGHTS, METADATA) if name not in entries]:
        raise ModelFileError(f"it is no .keras file of Keras 3: it has no {missing[0]}")
    if others := sorted(entries.keys() - {CONFIG, WEIGHTS, METADATA}):
        raise ModelFileError(f"it has '{safe_text(others[0], 80)}' beside its layers and weights, which is not read")
    config, metadata = (json.loads(_bytes(archive, name, limits.JSON_BYTES)) for name in (CONFIG, METADATA))
    weights = _bytes(archive, WEIGHTS, limits.WEIGHT_BYTES)
    h5py = require("h5py", EXTRA, "reading a .keras file")
    with h5py.File(BytesIO(weights), "r") as stored:
        datasets = list(_datasets(h5py, stored, "", limits.DEPTH))
    return KerasFile(
        config=config,
        weights=weights,
        elements=sum(math.prod(dataset.shape) for dataset in datasets),
        weight_bytes=sum(dataset.nbytes for dataset in datasets),
        producer=safe_text(f"keras {metadata.get('keras_version', '')}".strip(), 100),
    )


def _bytes(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    size = archive.getinfo(name).file_size
    if size > most:
        raise ModelFileError(f"its {name} unpacks to {size:,} bytes; up to {most:,} are read")
    with archive.open(name) as stream:
        return stream.read(size)


def _datasets(h5py: Any, stored: Any, group: str, depth: int) -> Iterator[Any]:
    """The arrays of an HDF5 file. A group may be in itself, so the depth has an end, and so has their number."""
    waiting, seen = [(stored, group, depth)], 0
    while waiting:
        here, path, left = waiting.pop()
        for name in here:
            seen += 1
            shown = f"{path}/{name}"
            if left == 0 or seen > limits.NODES:
                raise ModelFileError("its weights are groups in groups without an end")
            if not isinstance(here.get(name, getlink=True), h5py.HardLink):
                raise ModelFileError(f"its weight '{safe_text(shown, 80)}' is a link, which may lead to another file")
            found = here[name]
            if isinstance(found, h5py.Group):
                waiting.append((found, shown, left - 1))
            else:
                _check_stored(h5py, found, shown)
                yield found


def _has_numbers(dataset: Any) -> bool:
    """HDF5 has no bfloat16: Keras stores its two bytes, and says so in an attribute."""
    is_bfloat16 = dataset.dtype.itemsize == 2 and dataset.attrs.get("dtype") == "bfloat16"
    return dataset.dtype.kind in "fiub" or is_bfloat16


def _check_stored(h5py: Any, dataset: Any, name: str) -> None:
    """Raises ModelFileError unless all bytes of a weight are in the file, and no more than there are."""
    name = safe_text(name, 80)
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None or not _has_numbers(dataset):
        raise ModelFileError(f"its weight '{name}' is no array of numbers")
    created = dataset.id.get_create_plist()
    plain = created.get_layout() in (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT) and not created.get_nfilters()
    if not plain or created.get_external_count() or dataset.is_virtual:
        raise ModelFileError(f"its weight '{name}' is compressed or in another file; plain arrays are read")
    if dataset.id.get_storage_size() != dataset.nbytes:
        raise ModelFileError(
            f"its weight '{name}' has {dataset.id.get_storage_size():,} bytes, where its shape "
            f"{list(dataset.shape)} of {dataset.dtype} calls for {dataset.nbytes:,}"
        )
