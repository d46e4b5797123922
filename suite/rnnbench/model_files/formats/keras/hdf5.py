"""A `.h5` file, as Keras 1 to 3 write it: the layers as JSON in an attribute, and a group of weights for each layer.

Source: keras/src/legacy/saving/legacy_h5_format.py (Keras 3.15).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.formats.keras.older import in_keras_3
from rnnbench.model_files.formats.keras.stored import EXTRA, KerasFile, datasets
from rnnbench.model_files.formats.keras.structure import require_structure
from rnnbench.optional import require
from rnnbench.outside_text import safe_text

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_LAYERS, _WEIGHTS, _VERSION = "model_config", "model_weights", "keras_version"
_NAMES_OF_LAYERS, _NAMES_OF_WEIGHTS = "layer_names", "weight_names"
_UNKNOWN = "of an unknown version"
_RENAMED = {"depthwise_kernel": "kernel"}
"""What Keras 3 calls weights of Keras 2 in one of the layers that have them."""
_NUMBER = re.compile(r"_\d+$")
"""Behind the name of a weight, where TensorFlow 1 had one of its name already."""


def read_hdf5(path: Path) -> KerasFile:
    """The file. Raises ModelFileError, and whatever h5py raises for bytes that are wrong."""
    h5py = require("h5py", EXTRA, "reading a .h5 file")
    with h5py.File(path, "r") as stored:
        if _LAYERS not in stored.attrs or _WEIGHTS not in stored:
            raise ModelFileError(
                "it has no layers of Keras; a file of save_weights has weights alone: save the network itself, "
                "model.save('network.keras')"
            )
        everything = list(datasets(h5py, stored))
        kept = [dataset for dataset in everything if dataset.name.startswith(f"/{_WEIGHTS}/")]
        version = _text(stored.attrs[_VERSION]) if _VERSION in stored.attrs else _UNKNOWN
        layers = _text(stored.attrs[_LAYERS])
        if len(layers) > limits.JSON_BYTES:
            raise ModelFileError(f"its layers are {len(layers):,} characters; up to {limits.JSON_BYTES:,} are read")
        with parsing(f"its {_LAYERS} is damaged"):
            config = json.loads(layers)
        require_structure(config)
        return KerasFile(
            config=in_keras_3(config, version),
            is_whole=True,
            elements=sum(math.prod(dataset.shape) for dataset in kept),
            weight_bytes=sum(dataset.nbytes for dataset in kept),
            producer=safe_text(f"keras {version}", 100),
        )


def load_weights(model: Any, weights: Path, names: Mapping[str, str]) -> None:
    """Gives each layer its weights. `names` has the new names of layers. Raises ModelFileError where they do not fit.

    Keras itself goes by the order of the layers, which Keras 2 and 3 may see otherwise.
    """
    h5py = require("h5py", EXTRA, "reading a .h5 file")
    left = {layer.name: layer for layer in model.layers if layer.weights}
    with parsing("its weights are damaged"), h5py.File(weights, "r") as stored:
        for name in _texts(stored[_WEIGHTS], _NAMES_OF_LAYERS):
            if name not in stored[_WEIGHTS]:
                raise ModelFileError(f"it names weights of '{safe_text(name, 80)}', and does not have them")
            group = stored[_WEIGHTS][name]
            if not (paths := _texts(group, _NAMES_OF_WEIGHTS)):
                continue
            if missing := [path for path in paths if path not in group]:
                raise ModelFileError(
                    f"it names '{safe_text(missing[0], 80)}' of '{safe_text(name, 80)}', which it lacks"
                )
            layer = left.pop(names.get(name, name), None)
            if layer is None:
                raise ModelFileError(f"it has weights of '{safe_text(name, 80)}', which is no layer of its network")
            _load(layer, {path: group[path][()] for path in paths}, name)
    if left:
        raise ModelFileError(f"it has no weights of its layer '{safe_text(next(iter(left)), 80)}'")


def _load(layer: Any, weights: Mapping[str, Any], name: str) -> None:
    """The weights of a layer come in one order, those that are not trained last."""
    targets = [*layer.trainable_weights, *layer.non_trainable_weights]
    pairs = list(zip(targets, weights.items(), strict=False))
    model = layer.name if hasattr(layer, "layers") else None
    if len(targets) == len(weights) and all(_fits(target, *stored, model) for target, stored in pairs):
        for target, (_, value) in pairs:
            target.assign(value)
        return
    found = ", ".join(f"{path.partition(':')[0]} {list(value.shape)}" for path, value in weights.items())
    needs = ", ".join(f"{target.path} {list(target.shape)}" for target in targets)
    raise ModelFileError(
        f"its weights of '{safe_text(name, 80)}' do not fit the layer: it has {safe_text(found, 120)}, and "
        f"Keras 3 needs {safe_text(needs, 120)}"
    )


def _fits(target: Any, path: str, value: Any, model: str | None) -> bool:
    """Whether a stored weight is this one, by shape and name, and by its layer where it is of a model in the model."""
    own, stored = target.path.split("/"), path.partition(":")[0].split("/")
    name = _NUMBER.sub("", stored[-1])
    same = tuple(target.shape) == value.shape and own[-1] in (stored[-1], name, _RENAMED.get(name))
    return same and (model is None or bool({*own[:-1]} & {*stored[:-1]} - {model}))


def _texts(group: Any, name: str) -> list[str]:
    """A list of texts, which is several attributes where it is long."""
    if name in group.attrs:
        return [_text(text) for text in group.attrs[name]]
    texts: list[str] = []
    for number in count():
        if f"{name}{number}" not in group.attrs:
            return texts
        texts += [_text(text) for text in group.attrs[f"{name}{number}"]]
    return texts


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
