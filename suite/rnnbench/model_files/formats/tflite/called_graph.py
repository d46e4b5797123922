"""The graph of a TFLite file that is called, as an object of the schema: the graphs inside it, and its signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.schema import (
    OperatorKinds,
    fields_of_graphs,
    numbers_of,
    packed,
    require_schema,
    text_of,
    unpacked,
)


def with_own_names(data: bytes, signature: str) -> bytes:
    """The file, its outputs with other names than its inputs: `h_next`, as of h in {"h": h}."""
    model = unpacked(data)
    for definition in model.signatureDefs:
        if text_of(definition.signatureKey) == signature:
            _rename_outputs(definition)
    return packed(model, len(data))


def _rename_outputs(signature: Any) -> None:
    outputs = signature.outputs or ()
    inputs = {entry.name for entry in signature.inputs or ()}
    taken = inputs | {entry.name for entry in outputs}
    for entry in outputs:
        if entry.name in inputs:
            while entry.name in taken:
                entry.name += b"_next"
            taken.add(entry.name)


def keep_called(model: Any, main: int) -> None:
    """Remove all graphs but the called one, which becomes the first, and those that it names, of CALL_ONCE too.

    Raises ModelFileError where an operator names a graph that does not exist.
    """
    order = [main]
    for number in order:
        for operator in model.subgraphs[number].operators or ():
            named = dict.fromkeys(fields_of_graphs(operator).values())  # The branches of an IF may be one graph.
            if any(not 0 <= inner < len(model.subgraphs) for inner in named):
                raise ModelFileError(f"an operator names a graph that does not exist; there are {len(model.subgraphs)}")
            order += [inner for inner in named if inner not in order]
    place = {number: index for index, number in enumerate(order)}
    model.subgraphs = [model.subgraphs[number] for number in order]
    model.signatureDefs = [signature for signature in model.signatureDefs or () if signature.subgraphIndex == main]
    operators = [operator for graph in model.subgraphs for operator in graph.operators or ()]
    for table in (*operators, *model.signatureDefs):
        for (owner, field), number in fields_of_graphs(table).items():
            setattr(owner, field, place[number])


def graphs_inside(model: Any) -> list[Any]:
    """The graphs that operators of the first graph call again and again: loops and branches, and not CALL_ONCE."""
    kinds, order = OperatorKinds(model), [0]
    for number in order:
        for operator in model.subgraphs[number].operators or ():
            if number or kinds.of(operator) != "CALL_ONCE":
                named = dict.fromkeys(fields_of_graphs(operator).values())
                order += [inner for inner in named if inner not in order]
    return [model.subgraphs[number] for number in order[1:]]


def signature_of(graph: Any) -> Any:
    """A signature with the names of the graph's tensors."""
    signature = require_schema().SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = b"serving_default", 0
    signature.inputs = _entries(graph, numbers_of(graph.inputs), "input")
    signature.outputs = _entries(graph, numbers_of(graph.outputs), "output")
    return signature


def _entries(graph: Any, ends: Sequence[int], kind: str) -> list[Any]:
    names = names_of_ends([text_of(graph.tensors[number].name) for number in ends], kind)
    return [signature_entry(name, int(number)) for name, number in zip(names, ends, strict=True)]


def names_of_ends(names: list[str], kind: str) -> list[str]:
    """Names of inputs or outputs; by their places where a tool has left them out."""
    return names if all(names) and len({*names}) == len(names) else [f"{kind}{place}" for place in range(len(names))]


def signature_entry(name: str, number: int) -> Any:
    """An input or output of a signature: the name of the tensor with this number."""
    entry = require_schema().TensorMapT()
    entry.name, entry.tensorIndex = name.encode(), number
    return entry
