"""Calling the layers of a file of Keras: Keras' own, on TensorFlow, with the states as arrays of each call."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.keras.error_words import in_short
from rnnbench.model_files.formats.keras.file import WEIGHTS, read_keras
from rnnbench.model_files.formats.keras.hdf5 import load_weights
from rnnbench.model_files.formats.keras.layers import (
    CELLS,
    HARD_SIGMOID,
    RECURRENT,
    Config,
    names_in_tensorflow,
    safe_config,
)
from rnnbench.model_files.formats.keras.stored import EXTRA, KerasFile
from rnnbench.model_files.tensorflow_graph import require_tensorflow
from rnnbench.model_files.tensorflow_program import TensorflowState, named_arrays
from rnnbench.optional import require

BOUNDED = "Bounded"
BUILT = 4
"""How often a weight may be made: a layer in a Bidirectional is built by itself, and then copied twice."""


def require_keras() -> Any:
    """The package keras on TensorFlow. Raises MissingExtraError, and ModelFileError where it runs on another one."""
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    require_tensorflow()
    keras = require("keras", EXTRA, "computing a .keras file")
    if keras.backend.backend() != "tensorflow":
        raise ModelFileError(f"Keras runs on {keras.backend.backend()} here; set KERAS_BACKEND=tensorflow")
    return keras


class KerasProgram:
    """The layers with their weights, in `dtype` wherever the file has float32."""

    def __init__(self, path: Path, dtype: str = "float32") -> None:
        """Raises ModelFileError for a file that is not read, or whose layers Keras cannot build."""
        self._keras = require_keras()
        with tempfile.TemporaryDirectory() as folder:
            weights = Path(folder) / WEIGHTS
            self.file: KerasFile = read_keras(path, weights)
            self._model = _built(self._keras, self.file, weights, dtype)
        file = self.file
        tree = self._keras.tree
        if isinstance(self._model, self._keras.Sequential):
            self._given, outputs = self._model.inputs[0], self._model.outputs[0]
            names = [self._model.layers[-1].name]
        else:
            self._given, outputs = self._model.input, self._model.output
            keys = [str(path[0]) for path, _ in tree.flatten_with_path(outputs)] if isinstance(outputs, dict) else None
            names = keys or self._model.output_names
        file_names = {new: name for name, new in names_in_tensorflow(file.config).items()}
        tensors = tree.flatten(self._given)
        self.inputs = named_arrays([tensor.name for tensor in tensors], tensors)
        self.outputs = named_arrays(
            [file_names.get(name, name) for name in names], tree.flatten(outputs), {array.name for array in self.inputs}
        )
        self.states = tuple(_states(self._model, file_names))

    @property
    def variables(self) -> list[Any]:
        """All that a traced call refers to, as variables of TensorFlow: the weights, and the seeds of dropouts."""
        return [variable.value for variable in self._model.variables]

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        yield from ((variable.path, variable.numpy()) for variable in self._model.variables)

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Every output and next state, of every input and state, all by name. No variable changes."""
        tree = self._keras.tree
        packed = tree.pack_sequence_as(self._given, [arrays[array.name] for array in self.inputs])
        before = [(state.variable, arrays[state.before.name]) for state in self.states]
        with self._keras.StatelessScope(state_mapping=before) as scope:
            outputs = tree.flatten(self._model(packed, training=False))
            after = {state.after: scope.get_current_value(state.variable) for state in self.states}
        return dict(zip((array.name for array in self.outputs), outputs, strict=True)) | after


def _built(keras: Any, file: KerasFile, weights: Path, dtype: str) -> Any:
    """The model with the file's weights. Raises ModelFileError."""
    bounded = _bounded(keras, file.elements)
    initializer: Config = {"module": None, "class_name": BOUNDED, "config": {}, "registered_name": BOUNDED}
    try:
        config = safe_config(file.config, dtype, initializer)
        with keras.saving.custom_object_scope({BOUNDED: bounded, HARD_SIGMOID: _hard_sigmoid(keras)}):
            model = keras.saving.deserialize_keras_object(config, safe_mode=True)
        if not model.built or not model.inputs:
            raise ModelFileError("it was saved before it knew the shape of its input; call it once, and save it again")
        if file.is_whole:
            load_weights(model, weights, names_in_tensorflow(file.config))
            return model
        model.load_weights(weights)
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:  # Keras and TensorFlow have no base class of their errors
        raise ModelFileError(in_short(error)) from error
    return model


def _bounded(keras: Any, elements: int) -> type:
    """Zeros for weights that the file's own replace. No more are made than it calls for."""
    left = BUILT * elements

    class Bounded(keras.initializers.Initializer):  # type: ignore[misc]
        def __call__(self, shape: Iterable[int], dtype: str | None = None, **_: Any) -> Any:
            nonlocal left
            left -= math.prod(shape)
            if left < 0:
                raise ModelFileError(f"its layers need more weights than the {elements:,} numbers that it has")
            return keras.ops.zeros(shape, dtype)

        def get_config(self) -> dict[str, Any]:
            return {}

    return Bounded


def _hard_sigmoid(keras: Any) -> Callable[[Any], Any]:
    """The hard sigmoid of Keras 2, for layers of its files."""

    def hard_sigmoid(x: Any) -> Any:
        return keras.ops.clip(0.2 * x + 0.5, 0, 1)

    hard_sigmoid.__name__ = HARD_SIGMOID  # Keras copies a layer by its names, as for a Bidirectional.
    return hard_sigmoid


def _states(model: Any, own: Mapping[str, str]) -> Iterator[TensorflowState]:
    layers = [layer for layer in _layers(model) if type(layer).__name__ in RECURRENT.keys() - CELLS and layer.stateful]
    flat = [(own.get(layer.name, layer.name), _flat(layer.states)) for layer in layers]
    names = [f"{name}_{kind}" for name, states in flat for kind in _kinds(len(states))]
    variables = [variable for _, states in flat for variable in states]
    for array, variable in zip(named_arrays(names, variables), variables, strict=True):
        yield TensorflowState(array, f"{array.name}_next", variable)


def _kinds(states: int) -> list[str]:
    return ["h", "c"][:states] if states <= 2 else [str(number) for number in range(states)]


def _flat(states: Any) -> list[Any]:
    return [array for state in states for array in _flat(state)] if isinstance(states, (list, tuple)) else [states]


def _layers(layer: Any) -> Iterator[Any]:
    """A layer and those in it."""
    yield layer
    inner = [getattr(layer, name, None) for name in ("forward_layer", "backward_layer")]
    for part in (*getattr(layer, "layers", ()), *inner):
        if part is not None:
            yield from _layers(part)
