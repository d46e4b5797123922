"""The oracle of a `.keras` file: its layers built in float64, by Keras on TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.keras.file import EXTRA
from rnnbench.model_files.formats.keras.program import KerasArray, KerasProgram
from rnnbench.model_files.tensorflow_graph import TensorflowGraph
from rnnbench.optional import require
from rnnbench.outside_text import describe_error, safe_text
from rnnbench.rnn import Arithmetic


class KerasOracle:
    """A `.keras` file in an arithmetic (`formats.Oracle`)."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError for a file that is not read; MissingExtraError without Keras."""
        self._name = str(path)
        program = KerasProgram(path, "float64")
        self._arrays = {a.name: a for a in (*program.inputs, *(state.before for state in program.states))}
        self._graph, self._outputs = _traced(program, self._arrays)
        self._arithmetic = Arithmetic()

    def in_arithmetic(self, arithmetic: Arithmetic) -> KerasOracle:
        """The same file in another arithmetic. The file is not read again."""
        other = copy(self)
        other._arithmetic = arithmetic
        return other

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """One call: every output by name. Raises as `formats.Oracle.run` does."""
        if inputs.keys() != self._arrays.keys():
            raise ValueError(f"expected the inputs {list(self._arrays)}, got {list(inputs)}")
        given = [_cast(array, np.asarray(inputs[name])) for name, array in self._arrays.items()]
        try:
            made = self._graph(self._arithmetic, given)
        except (MemoryError, ModelFileError):
            raise
        except Exception as error:
            told = safe_text(" ".join(describe_error(error).split()), 300)
            raise ModelFileError(f"{self._name}: it cannot be computed: {told}") from error
        return dict(zip(self._outputs, made, strict=True))


def _traced(program: KerasProgram, arrays: Mapping[str, KerasArray]) -> tuple[TensorflowGraph, list[str]]:
    """The graph of a call, and the names of what it gives."""
    tf = require("tensorflow", EXTRA, "computing a .keras file")
    outputs: list[str] = []

    def call(*given: Any) -> list[Any]:
        made = program(dict(zip(arrays, given, strict=True)))
        outputs[:] = made
        return list(made.values())

    specs = [tf.TensorSpec(array.shape, array.dtype) for array in arrays.values()]
    try:
        function = tf.function(call, input_signature=specs, autograph=False).get_concrete_function()
    except Exception as error:  # Keras and TensorFlow have no base class of their errors
        told = safe_text(" ".join(describe_error(error).split()), 300)
        raise ModelFileError(f"Keras cannot call its layers in float64: {told}") from error
    return TensorflowGraph(function), outputs


def _cast(array: KerasArray, value: np.ndarray) -> np.ndarray:
    """Raises ValueError where the shape is not the file's."""
    fits = len(array.shape) == value.ndim
    if not fits or any(size not in (None, own) for size, own in zip(array.shape, value.shape, strict=True)):
        shown = ["any" if size is None else size for size in array.shape]
        raise ValueError(f"{array.name}: expected the shape {shown}, got {list(value.shape)}")
    return value.astype(array.dtype, casting="same_kind", copy=False)
