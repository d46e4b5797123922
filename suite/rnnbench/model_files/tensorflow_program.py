"""What the formats that TensorFlow computes have in common: a program of named arrays, and its oracle."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.description import require_names, require_shape
from rnnbench.model_files.errors import ModelFileError, computing
from rnnbench.model_files.formats.format import Oracle
from rnnbench.model_files.tensorflow_graph import PURPOSE, TensorflowGraph
from rnnbench.optional import require
from rnnbench.outside_text import describe_error, one_line
from rnnbench.rnn import Arithmetic

NEXT = "_next"
"""Behind the name of a state, where the file has no other name for its next value."""


@dataclass(frozen=True)
class TensorflowArray:
    """An input, output or state. A size that the caller chooses is None."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str


@dataclass(frozen=True)
class TensorflowState:
    """A variable that is kept between calls: an array before a call, and `after` it."""

    before: TensorflowArray
    after: str
    variable: Any


class TensorflowProgram(Protocol):
    """A file that TensorFlow computes, as a function of its inputs and states."""

    inputs: tuple[TensorflowArray, ...]
    outputs: tuple[TensorflowArray, ...]
    states: tuple[TensorflowState, ...]

    @property
    def variables(self) -> list[Any]:
        """All variables that a call reads, of TensorFlow."""
        ...

    def weights(self) -> Iterable[tuple[str, np.ndarray]]:
        """The numbers of the file with their names."""
        ...

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Every output and next state, of every input and state, all by name."""
        ...


def named_arrays(
    names: Iterable[str], tensors: Iterable[Any], inputs: Collection[str] = ()
) -> tuple[TensorflowArray, ...]:
    """Arrays by name. Where several have one name, later ones have a number.

    An output with the name of one of `inputs`, as of h in {"h": h}, is called `h_next`. Raises ModelFileError.
    """
    names = [f"{name}{NEXT}" if name in inputs else name for name in names]
    seen: Counter[str] = Counter()
    arrays = []
    for name, tensor in zip(names, tensors, strict=True):
        if not name.isprintable() or not 0 < len(name) <= limits.NAME_CHARACTERS:
            raise ModelFileError("an input or output has a name that cannot be printed")
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name}_{seen[name] - 1}"
        shape = tuple(None if size is None else int(size) for size in tensor.shape)
        if math.prod(size for size in shape if size) > limits.ELEMENTS:
            raise ModelFileError(f"{unique} has the shape {list(shape)}; that many elements are not read")
        arrays.append(TensorflowArray(unique, shape, getattr(tensor.dtype, "name", str(tensor.dtype))))
    if len(arrays) > limits.ARRAYS:
        raise ModelFileError(f"it has more than {limits.ARRAYS} inputs, outputs or states; that many are not read")
    return tuple(arrays)


class TensorflowOracle(Oracle):
    """A program in float64, in an arithmetic."""

    def __init__(self, path: Path, program: TensorflowProgram) -> None:
        """Raises ModelFileError for a program that TensorFlow cannot call in float64."""
        self._name = str(path)
        self._arrays = {a.name: a for a in (*program.inputs, *(state.before for state in program.states))}
        self._graph, self._outputs = _graph_of(program)
        self._program = program  # TensorFlow keeps variables as long as somebody has them.
        self._arithmetic = Arithmetic()

    def weights(self) -> Iterable[tuple[str, np.ndarray]]:
        return self._program.weights()

    def use(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        require_names(self._arrays, inputs)
        tensors = [_cast(array, np.asarray(inputs[name])) for name, array in self._arrays.items()]
        with computing(self._name):
            results = self._graph(self._arithmetic, tensors)
        return dict(zip(self._outputs, results, strict=True))


def error_line(error: BaseException) -> str:
    """An error of Keras or TensorFlow, which may have many lines, in one."""
    return one_line(describe_error(error), 300)


def traced(program: TensorflowProgram) -> tuple[Any, list[str]]:
    """A call as a concrete function of its inputs and then its states, and the names of what it gives."""
    tf = require("tensorflow", *PURPOSE)
    arrays = {array.name: array for array in (*program.inputs, *(state.before for state in program.states))}
    outputs: list[str] = []

    def call(*tensors: Any) -> list[Any]:
        results = program(dict(zip(arrays, tensors, strict=True)))
        outputs[:] = results
        return list(results.values())

    specs = [tf.TensorSpec(array.shape, array.dtype) for array in arrays.values()]
    return tf.function(call, input_signature=specs, autograph=False).get_concrete_function(), outputs


def _graph_of(program: TensorflowProgram) -> tuple[TensorflowGraph, list[str]]:
    """The graph of a call, and the names of what it gives."""
    try:
        function, outputs = traced(program)
        return TensorflowGraph(function), outputs
    except (MemoryError, ModelFileError):
        raise
    except Exception as error:  # Keras and TensorFlow have no base class of their errors
        raise ModelFileError(f"TensorFlow cannot call it in float64: {error_line(error)}") from error


def _cast(array: TensorflowArray, value: np.ndarray) -> np.ndarray:
    """Raises ValueError where the shape is not the file's."""
    require_shape(array.name, array.shape, value)
    return value.astype(array.dtype, casting="same_kind", copy=False)
