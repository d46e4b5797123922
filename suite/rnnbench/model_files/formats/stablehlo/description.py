"""What is in a module of StableHLO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rnnbench.model_files.describing import FileFacts, build_description
from rnnbench.model_files.description import ArrayDescription, FileDescription, Role, StatePair
from rnnbench.model_files.formats.stablehlo.features import depends_of, features_of
from rnnbench.model_files.formats.stablehlo.file import read_stablehlo
from rnnbench.model_files.formats.stablehlo.flow import flow_of
from rnnbench.model_files.formats.stablehlo.graph import CONSTANT, MlirArray, StablehloFile
from rnnbench.model_files.formats.stablehlo.trees import pairs_of_trees, proposals
from rnnbench.model_files.state_proposals import with_proposals

_PLATFORM = "_platform_index"
"""The argument that jax.export adds where it exports a function for several platforms."""
_PRODUCTS = ("dot_general", "dot", "convolution")


def describe(path: Path) -> FileDescription:
    """What is in the file, globals that a call changes as states. Raises ModelFileError with a sentence."""
    file = read_stablehlo(path)
    kinds = (node.kind for function in file.functions.values() for node in function.all_nodes())
    operators = Counter(kind.removeprefix("stablehlo.") for kind in kinds if kind != CONSTANT)
    facts = FileFacts(
        file=path.name,
        format="stablehlo",
        producer="",
        operators=operators,
        weight_bytes=file.weight_bytes,
        features=tuple(features_of(file)),
        depends=depends_of(file),
    )
    before, after = [pair[0] for pair in file.states], [pair[1] for pair in file.states]
    trees = pairs_of_trees(file.inputs, file.outputs)
    platforms = [array.name for array in file.inputs if array.path == (_PLATFORM,)]
    description = build_description(
        facts,
        [_array(array, "input") for array in (*file.inputs, *before)],
        [_array(array, "output") for array in (*file.outputs, *after)],
        flow=flow_of(file),
        known=[*(StatePair(one.name, other.name, "traced") for one, other in file.states), *trees],
        starts=file.starts,
        notes=list(_notes(file, operators, platforms)),
    )
    return with_proposals(
        description,
        proposals([array for array in file.inputs if array.name not in platforms], file.outputs),
        "A step of JAX gives its states in the order in which it takes them",
    )


def _notes(file: StablehloFile, operators: Counter[str], platforms: list[str]) -> Iterator[str]:
    for name in platforms:
        yield (
            f"{name} is the place of the platform that runs, in the order of platforms=(…) of jax.export, from 0. Give "
            "that of cpu, or export for cpu alone"
        )
    if not file.weight_bytes and any(operators[kind] for kind in _PRODUCTS):
        yield (
            "It has products and no weights. If they are among its inputs, each call gets others, drawn at random. "
            "Export a function that has them, as jax.jit(lambda x: f(params, x))"
        )


def _array(array: MlirArray, role: Role) -> ArrayDescription:
    return ArrayDescription(array.name, role, array.shape, array.dtype)
