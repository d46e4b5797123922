"""The layers of a `.h5` file in the words of a `.keras` file, so that one list of layers is for both.

Keras 3 reads most of such files itself, but not an LSTM of Keras 2 (`time_major`), and some of it silently otherwise:
a hard sigmoid, and a GRU of Keras before 2.1.5, which has no `reset_after`.
Sources: keras/src/legacy/saving, models/functional.py (Keras 3.15); tf_keras/src/engine/functional.py (2.15).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.keras.layers import (
    EXPORT,
    HARD_SIGMOID,
    LAMBDA,
    LAYERS,
    MODELS,
    NO_MODEL,
    OPERATIONS,
    RECURRENT,
    Config,
)
from rnnbench.outside_text import safe_text

_INPUT, _SEQUENTIAL, _FUNCTIONAL, _BIDIRECTIONAL = "InputLayer", "Sequential", "Functional", "Bidirectional"
_MODULES = {_SEQUENTIAL: "keras", _FUNCTIONAL: "keras.src.models.functional"}
"""The module of each class of model. Layers have another one."""
_SHAPE, _SHAPE_2 = "batch_shape", "batch_input_shape"
_LEFT_OUT = ("build_config", "compile_config", "training_config")
_REPLACED = ("_initializer", "_regularizer", "_constraint")
"""Ends of the keys whose values no layer is built with (`layers.safe_config`)."""
_OF_KERAS_2 = frozenset(
    ("CuDNNLSTM", "CuDNNGRU", "TFOpLambda", "SlicingOpLambda", "ThresholdedReLU", "LocallyConnected1D")
)

_OPERATION = (
    "it has {}, an operation between layers, as of x + y, x[:, -1] or a Masking layer. A .h5 file of Keras 3 does not "
    "say of which module it is, and Keras cannot load most of them again; save it as model.save('network.keras')"
)


def in_keras_3(config: Any, version: str) -> Config:
    """The layers of a file that a Keras of this version wrote. Raises ModelFileError for what Keras 3 does not have."""
    if not isinstance(config, dict) or config.get("class_name") not in (*MODELS, "Model"):
        raise ModelFileError(NO_MODEL)
    translated: Config = _Translator(is_old=not version.startswith("3.")).translated(config)
    return translated


class _Translator:
    def __init__(self, *, is_old: bool) -> None:
        self._is_old = is_old

    def translated(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.translated(item) for item in value]
        if not isinstance(value, dict):
            return value
        translated = {key: self._entry(key, item) for key, item in value.items() if key not in _LEFT_OUT}
        kind = _FUNCTIONAL if translated.get("class_name") == "Model" else translated.get("class_name")
        if kind is None or kind.startswith("__") or ("module" in translated and not _is_own(translated, kind)):
            return translated
        if not self._is_old and kind in OPERATIONS and "trainable" not in translated.get("config", ()):
            raise ModelFileError(_OPERATION.format(kind))
        if kind not in LAYERS | MODELS:
            raise ModelFileError(_why_not(str(kind)))
        module = _MODULES.get(kind, "keras.layers")
        return self._changed({**translated, "class_name": kind, "module": module, "registered_name": None})

    def _entry(self, key: str, value: Any) -> Any:
        if key == "dtype" and isinstance(value, dict):
            return value.get("config", {}).get("name") or value.get("class_name")
        if key.endswith(_REPLACED):
            return value
        if self._is_old and key.endswith("activation") and value == "hard_sigmoid":
            return HARD_SIGMOID
        return self.translated(value)

    def _changed(self, layer: Config) -> Config:
        """A layer or model with a config that Keras 3 takes."""
        kind, config = layer["class_name"], layer["config"]
        if kind == _SEQUENTIAL:
            return {**layer, "config": _sequential(config)}
        if kind == _FUNCTIONAL:
            return {**layer, "config": _functional(config)} if self._is_old else layer
        if kind == _INPUT:
            return {**layer, "config": {_SHAPE: config.get(_SHAPE_2), **_without(config, _SHAPE_2)}}
        # Files of before Keras 2.3 do not say a type, which was float32.
        return {**layer, "config": {"dtype": "float32", **self._config(kind, config)}} if self._is_old else layer

    def _config(self, kind: str, config: Config) -> Config:
        if config.get("time_major") or config.get("num_constants"):
            raise ModelFileError(f"it has {kind} with time_major or constants, which Keras 3 does not have; {EXPORT}")
        if kind in RECURRENT:
            config = _without(config, "time_major", "num_constants", "implementation")
        if kind in ("GRU", "GRUCell"):
            return {"reset_after": False, **config}
        if kind.startswith("SpatialDropout"):
            return {key: value for key, value in config.items() if key in ("name", "rate", "dtype")}
        if kind == "MultiHeadAttention":
            return _without(config, "query_shape", "key_shape", "value_shape")
        axis = config.get("axis")
        if kind == "BatchNormalization" and isinstance(axis, list) and len(axis) == 1:
            return {**config, "axis": axis[0]}
        return config


def _is_own(value: Config, kind: str) -> bool:
    """Whether it is a layer or model of Keras, by what the file says."""
    module = str(value["module"])
    is_own = module in ("keras", "keras.layers", "keras.models") or ".engine." in f"{module}."
    return is_own and value.get("registered_name") in (None, kind) and kind in LAYERS | MODELS


def _why_not(kind: str) -> str:
    shown = safe_text(kind, 60)
    if kind == "Lambda":
        return LAMBDA
    if kind in _OF_KERAS_2:
        return f"it has {shown} of Keras 2, which Keras 3 does not have; {EXPORT}"
    return f"it has '{shown}', which is not among the layers that are read, or a class of its maker's own; {EXPORT}"


def _without(config: Mapping[str, Any], *keys: str) -> Config:
    return {key: value for key, value in config.items() if key not in keys}


def _sequential(config: Config | list[Config]) -> Config:
    """A sequential model of Keras 2. Its first layer may give the shape of x. Until 2.2.3 it is a list of layers."""
    if isinstance(config, list):
        config = {"name": "sequential", "layers": config}
    layers = config["layers"]
    first = layers[0]["config"]
    if layers[0]["class_name"] != _INPUT and first.get(_SHAPE_2) is not None:
        input_config = {_SHAPE: first[_SHAPE_2], "dtype": first.get("dtype"), "name": f"{first.get('name')}_input"}
        layers = [_keras("layers", _INPUT, input_config), *layers]
    return {**config, "layers": [{**layer, "config": _without(layer["config"], _SHAPE_2)} for layer in layers]}


def _functional(config: Config) -> Config:
    """Calls of layers are lists of tensors in Keras 2, and arguments by place and name in Keras 3."""
    calls = _Calls(config)
    layers = [
        {
            **layer,
            "config": _without(layer["config"], _SHAPE_2),
            "inbound_nodes": [calls.node(node, layer["class_name"]) for node in layer.get("inbound_nodes", [])],
        }
        for layer in config["layers"]
    ]
    return {**config, "layers": layers, "output_layers": calls.outputs(config["output_layers"])}


class _Calls:
    """The calls of the layers of a model. Keras 2 counts those of a model in it from 1, or from 0 (before 2.4)."""

    def __init__(self, model: Config) -> None:
        layers = {layer["config"].get("name"): layer for layer in model["layers"]}
        self._kinds = {name: layer["class_name"] for name, layer in layers.items()}
        named = [[layer.get("inbound_nodes", []) for layer in layers.values()], model["output_layers"]]
        last = dict(sorted(_references(named)))
        self._first = {
            name: int(layer["class_name"] in MODELS and last.get(name) == len(layer.get("inbound_nodes", [])))
            for name, layer in layers.items()
        }
        """The number of the first call of each layer."""

    def node(self, node: Any, kind: str) -> Any:
        """One call of a layer of this kind."""
        if not isinstance(node, list):
            return node
        tensors = [self._tensor(entry) for entry in node]
        named = {key: self._with_tensors(value) for key, value in (node[0][3] if len(node[0]) > 3 else {}).items()}
        if len(tensors) > 1 and (kind in RECURRENT or kind == _BIDIRECTIONAL):
            return {"args": tensors[:1], "kwargs": {**named, "initial_state": tensors[1:]}}
        return {"args": tensors if len(tensors) == 1 else [tensors], "kwargs": named}

    def outputs(self, value: Any) -> Any:
        """What the model gives. There Keras 3 counts the calls of a functional model from 1."""
        if isinstance(value, list) and len(value) == 3 and isinstance(value[0], str):
            name, call, index = value
            return [name, call - self._first.get(name, 0) + (self._kinds.get(name) == _FUNCTIONAL), index]
        if isinstance(value, dict):
            return {key: self.outputs(item) for key, item in value.items()}
        return [self.outputs(item) for item in value]

    def _with_tensors(self, value: Any) -> Any:
        if isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and value[0] in self._kinds:
            return self._tensor(value)
        return [self._with_tensors(item) for item in value] if isinstance(value, list) else value

    def _tensor(self, entry: Any) -> Config:
        """What a layer gave in one of its calls."""
        if not isinstance(entry, list) or len(entry) not in (3, 4) or entry[0] not in self._kinds:
            raise ModelFileError("its layers are connected in a way of Keras 2 that is not read here")
        name, call, index = entry[:3]
        history = [name, call - self._first[name], index]
        config = {"shape": [], "dtype": "float32", "keras_history": history}
        return {"class_name": "__keras_tensor__", "config": config}


def _references(value: Any) -> Iterator[tuple[str, int]]:
    """Layers and the numbers of their calls, as Keras 2 names tensors."""
    if isinstance(value, list) and len(value) > 2 and isinstance(value[0], str) and isinstance(value[1], int):
        yield value[0], value[1]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(item)


def _keras(module: str, kind: str, config: Config) -> Config:
    return {"module": f"keras.{module}", "class_name": kind, "config": config, "registered_name": None}
