"""What is in a module of StableHLO."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rnnbench.model_files.described import FileFacts, described
from rnnbench.model_files.description import ArrayDescription, FileDescription, Role, StatePair
from rnnbench.model_files.flow import Carried, Flow
from rnnbench.model_files.formats.stablehlo.features import depends_of, features_of
from rnnbench.model_files.formats.stablehlo.file import read_stablehlo
from rnnbench.model_files.formats.stablehlo.graph import CONSTANT, MlirArray
from rnnbench.model_files.formats.stablehlo.trees import pairs_of_trees, proposals
from rnnbench.model_files.state_proposals import with_proposals


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
    found = described(
        facts,
        [_array(array, "input") for array in (*file.inputs, *before)],
        [_array(array, "output") for array in (*file.outputs, *after)],
        flow=Flow(carried=[Carried("while", "", None, None)] * operators["while"]),
        known=[*(StatePair(one.name, other.name, "traced") for one, other in file.states), *trees],
        starts=file.starts,
    )
    return with_proposals(
        found,
        proposals(file.inputs, file.outputs),
        "A step of JAX gives its states in the order in which it takes them",
    )


def _array(array: MlirArray, role: Role) -> ArrayDescription:
    return ArrayDescription(array.name, role, array.shape, array.dtype)
