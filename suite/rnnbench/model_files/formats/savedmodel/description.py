"""What is in a SavedModel."""

from __future__ import annotations

from pathlib import Path

from rnnbench.model_files.describing import FileFacts, build_description
from rnnbench.model_files.description import ArrayDescription, FileDescription, Role, StatePair
from rnnbench.model_files.flow import Flow, OperatorState
from rnnbench.model_files.formats.savedmodel.program import SavedModelProgram
from rnnbench.model_files.tensorflow_program import TensorflowArray


def describe(path: Path) -> FileDescription:
    """What is in the file, variables that a call changes as states. Raises ModelFileError with a sentence."""
    program = SavedModelProgram(path)
    facts = FileFacts(
        file=path.name,
        format="savedmodel",
        producer=program.file.producer,
        operators=program.file.operators,
        weight_bytes=sum(variable.value.nbytes for variable in program.file.variables if not variable.is_state),
        external=program.file.external,
    )
    values = [variable.value for variable in program.file.variables if variable.is_state]
    before = [state.before for state in program.states]
    after = [TensorflowArray(state.after, state.before.shape, state.before.dtype) for state in program.states]
    loops = sum(program.file.operators[name] for name in ("While", "StatelessWhile"))
    return build_description(
        facts,
        [_array(array, "input") for array in (*program.inputs, *before)],
        [_array(array, "output") for array in (*program.outputs, *after)],
        flow=Flow(states=[OperatorState("While", "", None, None)] * loops),
        known=[StatePair(state.before.name, state.after, "traced") for state in program.states],
        starts={array.name for array, value in zip(before, values, strict=True) if value.any()},
    )


def _array(array: TensorflowArray, role: Role) -> ArrayDescription:
    return ArrayDescription(array.name, role, array.shape, array.dtype)
