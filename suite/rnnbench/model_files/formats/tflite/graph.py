"""What is in a TFLite file, as plain values: graphs of operators over tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.variables import Variable
from rnnbench.rnn import Range

UNQUANTISED = (
    "what a program gives is not known here, so nothing can be compared; convert the network without quantisation: no "
    "converter.optimizations, or float16 weights alone "
    "(converter.target_spec.supported_types = [tf.float16]), with float32 inputs and outputs"
)
"""Why quantised arrays that the oracle does not compute are refused, and what to do."""
QUANTISED = ("int8", "uint8", "int16")
"""The types of arrays that a call gives and makes, which have a scale and a zero point."""
_WIDE = "int32"
"""The type of an output that the last QUANTIZE of a file may make, as of keyword spotters for microcontrollers."""


@dataclass(frozen=True)
class Quantisation:
    """A value is (q − zero)·scale, with one of each for the whole tensor, or for each index along `axis`."""

    scales: np.ndarray
    zeros: np.ndarray
    axis: int


@dataclass(frozen=True)
class Tensor:
    """A value of a graph. Sizes that a caller chooses are −1 in `sizes`, and 1 in `shape`."""

    name: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    dtype: str
    """NumPy's name, or LiteRT's where NumPy has none."""
    data: np.ndarray | None
    """The value of a constant, a view of the file's bytes; None for other tensors."""
    quantisation: Quantisation | None
    is_variable: bool

    @property
    def called(self) -> str:
        """What to call it in a sentence: some tools leave out the names."""
        return self.name or "a tensor without a name"

    @property
    def is_quantised(self) -> bool:
        return self.quantisation is not None

    @property
    def range(self) -> Range | None:
        """The range of a quantised value; None for another one. Raises ModelFileError where it has several."""
        if self.quantisation is None:
            return None
        is_wide = self.dtype == _WIDE and not np.any(self.quantisation.zeros)
        if not (self.dtype in QUANTISED or is_wide) or len(self.quantisation.scales) != 1:
            scales = len(self.quantisation.scales)
            kept = f"{self.dtype} of {scales} scales" if scales > 1 else f"{self.dtype}, and no int8, uint8 or int16"
            raise ModelFileError(f"{self.called} is quantised: {kept}; {UNQUANTISED}")
        kind = np.iinfo(self.dtype)
        zero = int(self.quantisation.zeros[0])
        return Range(float(self.quantisation.scales[0]), zero - int(kind.min), int(kind.max) - int(kind.min))

    @property
    def values(self) -> np.ndarray | None:
        """The numbers of a constant, dequantised where it is quantised; None for another tensor."""
        if self.data is None or self.quantisation is None:
            return self.data
        along = [1] * self.data.ndim
        if len(self.quantisation.scales) > 1:
            along[self.quantisation.axis] = -1
        scales, zeros = (side.reshape(along) for side in (self.quantisation.scales, self.quantisation.zeros))
        dequantised: np.ndarray = (self.data.astype(np.float64) - zeros) * scales
        return dequantised


class LeftOut:
    """The options of an operator for which the file has none, or another operator's. Each is 0, as in LiteRT."""

    def __getattr__(self, name: str) -> Callable[[], int]:
        if name.startswith("__"):  # What `copy` and `pickle` look for.
            raise AttributeError(name)
        return lambda: 0


@dataclass(frozen=True)
class Operator:
    """A call of one of LiteRT's operators. Tensors are numbers in its graph."""

    name: str
    inputs: tuple[int, ...]
    """Numbers of tensors; −1 is an input that is left out."""
    outputs: tuple[int, ...]
    options: Any
    """The table of the schema, read in place; `LeftOut` where the file has none."""
    intermediates: tuple[int, ...] = ()
    """Tensors that are neither: a quantised LSTM has the ranges of values inside it there."""


@dataclass(frozen=True)
class Graph:
    """A graph of operators over tensors, as it is in the file."""

    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class TfliteFile:
    """A TFLite file: its graphs, and the arrays of the signature that is read."""

    graphs: tuple[Graph, ...]
    """The graphs that operators such as WHILE name by number."""
    main: int
    inputs: dict[str, int]
    """The tensor of each input, by the signature's name for it, in the order of the graph's inputs."""
    outputs: dict[str, int]
    signature: str
    """Empty where the file has none."""
    weight_bytes: int
    producer: str
    variables: tuple[Variable, ...] = ()
    """Its states, where the file as it is keeps them in variables."""


def keeping_variables(file: TfliteFile) -> tuple[str, ...]:
    """The operators that have a state in variable tensors, which only they read and write."""
    return tuple(
        dict.fromkeys(
            operator.name
            for graph in file.graphs
            for operator in graph.operators
            if any(number >= 0 and graph.tensors[number].is_variable for number in operator.inputs)
        )
    )
