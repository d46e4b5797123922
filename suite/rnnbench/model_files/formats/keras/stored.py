"""What a file of Keras has: its layers as JSON, and its weights as HDF5, read within limits and without Keras.

HDF5 can name other files (external links, external storage, virtual datasets) and unpack to any size (filters). Weights
that do are refused: each must lie in this file, as many bytes as its shape calls for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.outside_text import safe_text

EXTRA = "tensorflow"


@dataclass(frozen=True)
class KerasFile:
    """A `.keras` or `.h5` file: its layers as JSON, and the size of its weights."""

    config: dict[str, Any]
    """The layers as a `.keras` file has them. `layers.safe_config` says which of them are read."""
    is_whole: bool
    """Whether the weights are copied with the whole file, as of `.h5`, and lie there under the name of their layer."""
    elements: int
    """Elements of all weights together."""
    weight_bytes: int
    producer: str


def datasets(h5py: Any, stored: Any) -> Iterator[Any]:
    """The arrays of an HDF5 file. A group may be in itself, so the depth has an end, and so has their number."""
    waiting, seen = [(stored, "", limits.DEPTH)], 0
    while waiting:
        group, path, left = waiting.pop()
        for name in group:
            seen += 1
            shown = f"{path}/{name}"
            if left == 0 or seen > limits.NODES:
                raise ModelFileError("its weights are groups in groups without an end")
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise ModelFileError(f"its weight '{safe_text(shown, 80)}' is a link, which may lead to another file")
            item = group[name]
            if isinstance(item, h5py.Group):
                waiting.append((item, shown, left - 1))
            else:
                _check_stored(h5py, item, shown)
                yield item


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
