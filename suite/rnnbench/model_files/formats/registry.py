"""All formats, and which one a file has."""

from __future__ import annotations

import os
import pkgutil
from importlib import import_module
from pathlib import Path

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.format import Format
from rnnbench.outside_text import safe_text
from rnnbench.spelling import near_path

_OTHERS = ("format", "registry")
SAVED_MODEL = "saved_model.pb"
_PICKLES = frozenset({".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".bin"})
_HDF5 = frozenset({".h5", ".hdf5"})


def _found() -> dict[str, Format]:
    package = __name__.rpartition(".")[0]
    folder = str(Path(__file__).parent)
    modules = sorted(module.name for module in pkgutil.iter_modules([folder]) if module.name not in _OTHERS)
    formats = (import_module(f"{package}.{name}").FORMAT for name in modules)
    return {each.name: each for each in formats}


FORMATS: dict[str, Format] = _found()
"""Every format by its name."""


def format_of(path: Path) -> Format:
    """The format that a file's name says. Raises ModelFileError for a kind of file that is not read."""
    suffix = path.suffix.lower()
    if (path / SAVED_MODEL).is_file():
        raise ModelFileError(f"it is the folder of a SavedModel; give the file {SAVED_MODEL} in it")
    for each in FORMATS.values():
        if suffix == each.suffix:
            return each
    if suffix in _PICKLES:
        raise ModelFileError(
            f"a {suffix} file may be a pickle, which can run any program when it is loaded, so it is not read; "
            f"export the network to ONNX (torch.onnx.export) or to .pt2 (torch.export.save)"
        )
    if suffix in _HDF5:
        raise ModelFileError(
            f"a {suffix} file may hold Python code (a Lambda layer), so it is not read; "
            f"save the network with Keras 3 as .keras, or export it: model.export('model.onnx', format='onnx')"
        )
    known = ", ".join(each.suffix for each in FORMATS.values())
    if os.path.isdir(path):
        raise ModelFileError(f"it is a folder, and not that of a SavedModel; {known} files are read")
    if not os.path.exists(path):
        raise ModelFileError(f"does not exist; {near_path(path) or 'correct its path'}")
    raise ModelFileError(f"the suffix '{safe_text(suffix, 20)}' is not known; {known} files are read")
