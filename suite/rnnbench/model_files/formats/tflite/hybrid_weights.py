"""Weights of whole numbers beside floats: what LiteRT takes them for.

TensorFlow 1 wrote the bytes of int8 as uint8 (`quantize_weights`, before it had the type), and LiteRT reads them so. It
takes no zero point of such weights: it is 0 in what every converter writes.
Source: tensorflow/lite/kernels/fully_connected.cc and lstm.cc, EvalHybrid (`GetInt8DataPtr`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.graph import UNQUANTISED, Graph, Operator, TfliteFile
from rnnbench.model_files.formats.tflite.recurrent import RECURRENT

WEIGHTED = frozenset(("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "BATCH_MATMUL"))
"""Operators that multiply their operand by one array of weights."""


def takes_its_own_range(operator: Operator, graph: Graph) -> bool:
    """Whether it has quantised weights and a float operand, which it quantises by the range that it has."""
    if operator.name not in WEIGHTED or min(operator.inputs[:2]) < 0:
        return False
    first, second = (graph.tensors[number] for number in operator.inputs[:2])
    return second.is_quantised and not first.is_quantised


def as_litert_reads(file: TfliteFile) -> TfliteFile:
    """The file, such weights in uint8 as int8. Raises ModelFileError for one with a zero point."""
    return replace(file, graphs=tuple(map(_read, file.graphs)))


def _read(graph: Graph) -> Graph:
    tensors, hybrid = list(graph.tensors), set(_hybrid(graph))
    for number in hybrid:
        tensor = tensors[number]
        if tensor.quantisation is not None and tensor.quantisation.zeros.any():
            raise ModelFileError(
                f"{tensor.called} are weights with a zero point, which LiteRT takes for 0; {UNQUANTISED}"
            )
        if tensor.dtype == "uint8" and tensor.data is not None:
            tensors[number] = replace(tensor, dtype="int8", data=tensor.data.view(np.int8))
    return replace(graph, tensors=tuple(tensors))


def _hybrid(graph: Graph) -> Iterator[int]:
    """The numbers of the weights of operators whose operand is a float."""
    for operator in graph.operators:
        numbers = operator.inputs[1:2] if takes_its_own_range(operator, graph) else ()
        if operator.name in RECURRENT and operator.inputs[0] >= 0:
            numbers = () if graph.tensors[operator.inputs[0]].is_quantised else operator.inputs[1:]
        for number in numbers:
            if number >= 0 and graph.tensors[number].is_quantised and graph.tensors[number].data is not None:
                yield number
