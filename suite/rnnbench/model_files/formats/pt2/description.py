"""What is in a `.pt2` file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rnnbench.model_files.describing import FileFacts, build_description
from rnnbench.model_files.description import ArrayDescription, FileDescription, Role, StatePair
from rnnbench.model_files.formats.pt2.file import read_pt2
from rnnbench.model_files.formats.pt2.flow import axes_of, features_of, flow_of, operations_of, unused_inputs
from rnnbench.model_files.formats.pt2.graph import Pt2Array
from rnnbench.model_files.state_proposals import LAST_OF_BOTH, last_of_both, with_proposals
from rnnbench.model_files.traits import dependences


def describe(path: Path) -> FileDescription:
    """What is in the file, buffers that a call changes as states. Raises ModelFileError with a sentence."""
    file = read_pt2(path)
    before, after = [pair[0] for pair in file.states], [pair[1] for pair in file.states]
    facts = FileFacts(
        file=path.name,
        format="pt2",
        producer=file.producer,
        operators=Counter(node.operator for node in file.all_nodes),
        weight_bytes=file.weight_bytes,
        features=tuple(features_of(file)),
        depends=dependences(
            operations_of(file),
            {array.name: array.value for array in (*file.inputs, *before)},
            {array.name: array.value for array in (*file.outputs, *after)},
        ),
    )
    description = build_description(
        facts,
        [_array(array, "input") for array in (*file.inputs, *before)],
        [_array(array, "output") for array in (*file.outputs, *after)],
        flow=None if file.states else flow_of(file),  # Buffers that a call changes are all the states that it has.
        axes=axes_of(file),
        known=[StatePair(one.name, other.name, "traced") for one, other in file.states],
        unused=unused_inputs(file),
        starts={array.name for array in before if file.weights[array.value].any()},
    )
    return with_proposals(description, last_of_both(description), LAST_OF_BOTH)


def _array(array: Pt2Array, role: Role) -> ArrayDescription:
    return ArrayDescription(array.name, role, array.shape, array.dtype)
