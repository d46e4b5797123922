"""What a module of StableHLO contains that compilers are known to get wrong, and which outputs need which inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rnnbench.model_files.description import Feature
from rnnbench.model_files.formats.stablehlo.graph import CONSTANT, MlirArray, Node, Region, StablehloFile
from rnnbench.model_files.traits import Operation, dependences

_SCATTER = "stablehlo.scatter"
_WRITES = frozenset((_SCATTER, "stablehlo.dynamic_update_slice"))
"""Operations that write rows into their first operand."""


def features_of(file: StablehloFile) -> Iterator[Feature]:
    """The features of all functions that a call runs."""
    nodes = [node for function in file.functions.values() for node in function.all_nodes()]
    written = {(node.types[0].shape, node.types[0].dtype) for node in nodes if node.kind in _WRITES}
    inputs = (*file.inputs, *(pair[0] for pair in file.states))
    if arrays := tuple(array.name for array in inputs if (array.shape, array.dtype) in written):
        yield Feature("rows-in-equal-states", arrays)
    if any(_has_rows_that_are_values(function) for function in file.functions.values()):
        yield Feature("scatter")


def _has_rows_that_are_values(function: Region) -> bool:
    constants = {output for node in function.all_nodes() if node.kind == CONSTANT for output in node.outputs}
    return any(node.kind == _SCATTER and node.inputs[1] not in constants for node in function.all_nodes())


def depends_of(file: StablehloFile) -> dict[str, tuple[str, ...]]:
    """The inputs that each output is computed from. A result of a function that is called needs all its arguments."""
    entry = file.functions[file.entry]
    before, after = [pair[0] for pair in file.states], [pair[1] for pair in file.states]
    return dependences(
        (Operation([*map(str, _values_used(node))], [*map(str, node.outputs)]) for node in entry.nodes),
        _values((*file.inputs, *before), entry.arguments),
        _values((*file.outputs, *after), entry.results),
    )


def _values(arrays: tuple[MlirArray, ...], numbers: tuple[int, ...]) -> Mapping[str, str]:
    return {array.name: str(number) for array, number in zip(arrays, numbers, strict=True)}


def _values_used(node: Node) -> Iterator[int]:
    """Values that it takes, those that its regions use included."""
    yield from node.inputs
    for region in node.regions:
        yield from region.results
        for inner in region.nodes:
            yield from _values_used(inner)
