"""Reading a file of Keras within limits, without Keras: a zip (`.keras`), or HDF5 (`.h5`).

Source: keras/src/saving/saving_lib.py (Keras 3.15).
"""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.model_files.formats.keras.hdf5 import SIGNATURE, read_hdf5
from rnnbench.model_files.formats.keras.stored import EXTRA, KerasFile, datasets
from rnnbench.model_files.formats.keras.structure import require_structure
from rnnbench.optional import require
from rnnbench.outside_text import safe_text

CONFIG, WEIGHTS, METADATA = "config.json", "model.weights.h5", "metadata.json"


def read_keras(path: Path, weights: Path) -> KerasFile:
    """The file, of which the weights are copied into the HDF5 file `weights`, where nobody else changes them.

    They may be of gigabytes, so they are not in memory beside the layers.

    Raises ModelFileError, and MissingExtraError without h5py, which Keras installs.
    """
    data = read_bytes(path)
    try:
        with parsing("it is no file of Keras, or it is damaged"):
            if data.startswith(SIGNATURE):  # Also a `.keras` file of TensorFlow 2.11 and before.
                weights.write_bytes(data)
                return read_hdf5(weights)
            with zipfile.ZipFile(BytesIO(data)) as archive:
                return _file(archive, weights)
    except OSError as error:
        full = f"its weights cannot be copied to {weights.parent}: {error.strerror}"
        raise ModelFileError(f"{full}; TMPDIR names another folder for temporary files") from error


def _file(archive: zipfile.ZipFile, weights: Path) -> KerasFile:
    entries = {entry.filename: entry for entry in archive.infolist()}
    if missing := [name for name in (CONFIG, WEIGHTS, METADATA) if name not in entries]:
        raise ModelFileError(f"it is no .keras file of Keras 3: it has no {missing[0]}")
    if others := sorted(entries.keys() - {CONFIG, WEIGHTS, METADATA}):
        raise ModelFileError(f"it has '{safe_text(others[0], 80)}' beside its layers and weights, which is not read")
    config, metadata = (_json(archive, name) for name in (CONFIG, METADATA))
    if not isinstance(metadata, dict):
        raise ModelFileError(f"its {METADATA} is {safe_text(repr(metadata), 60)}, where Keras writes an object")
    require_structure(config)
    version = str(metadata.get("keras_version", ""))
    if version.startswith("2."):
        raise ModelFileError(
            f"Keras {safe_text(version, 20)} wrote it, whose .keras files name layers and weights otherwise; load it "
            "there, and save it as model.save('network.h5')"
        )
    with parsing(f"its {WEIGHTS} is damaged"):
        with _opened(archive, WEIGHTS, limits.WEIGHT_BYTES) as stream, weights.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
        h5py = require("h5py", EXTRA, "reading a .keras file")
        with h5py.File(weights, "r") as stored:
            arrays = list(datasets(h5py, stored))
    return KerasFile(
        config=config,
        is_whole=False,
        elements=sum(math.prod(dataset.shape) for dataset in arrays),
        weight_bytes=sum(dataset.nbytes for dataset in arrays),
        producer=safe_text(f"keras {version}".strip(), 100),
    )


def _json(archive: zipfile.ZipFile, name: str) -> Any:
    with parsing(f"its {name} is damaged"), _opened(archive, name, limits.JSON_BYTES) as stream:
        return json.load(stream)


def _opened(archive: zipfile.ZipFile, name: str, most: int) -> IO[bytes]:
    """An entry, which gives no more bytes than the archive says."""
    size = archive.getinfo(name).file_size
    if size > most:
        raise ModelFileError(f"its {name} unpacks to {size:,} bytes; up to {most:,} are read")
    return archive.open(name)
