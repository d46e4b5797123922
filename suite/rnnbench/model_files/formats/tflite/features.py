"""What a TFLite file contains that runtimes are known to get wrong."""

from __future__ import annotations

from collections.abc import Iterator

from rnnbench.model_files.description import Feature
from rnnbench.model_files.formats.tflite.file import TfliteFile

_PRODUCTS = frozenset(("FULLY_CONNECTED", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D"))


def features_of(file: TfliteFile) -> Iterator[Feature]:
    """Products of quantised arrays, and rings: an output that is a slice of an input with other values behind it."""
    graph = file.graphs[file.main]
    quantised = [
        operator
        for each in file.graphs
        for operator in each.operators
        if operator.name in _PRODUCTS and each.tensors[operator.inputs[0]].is_quantised
    ]
    if len(quantised) > 1:
        yield Feature("quantised-products", tuple(file.outputs))
    made = {output: operator for operator in graph.operators for output in operator.outputs}
    rings = set[int]()
    for number in file.outputs.values():
        operator = made.get(number)
        if operator is not None and operator.name == "CONCATENATION":
            parts = [made.get(each) for each in operator.inputs]
            rings |= {part.inputs[0] for part in parts if part is not None and part.name in ("SLICE", "STRIDED_SLICE")}
    if arrays := tuple(name for name, number in file.inputs.items() if number in rings):
        yield Feature("ring", arrays)
