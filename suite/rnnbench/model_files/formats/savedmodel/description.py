"""What is in a SavedModel."""

from __future__ import annotations

from pathlib import Path

from rnnbench.model_files.describing import FileFacts, build_description
from rnnbench.model_files.description import ArrayDescription, FileDescription, Role, StatePair
from rnnbench.model_files.flow import OUTERMOST, Flow, OperatorState, Value
from rnnbench.model_files.formats.savedmodel.dependences import Dependences
from rnnbench.model_files.formats.savedmodel.program import SavedModelProgram
from rnnbench.model_files.tensorflow_program import TensorflowArray


def describe(path: Path) -> FileDescription:
    """What is in the file, variables that a call changes as states. Raises ModelFileError with a sentence."""
    program = SavedModelProgram(path)
    depends, flow = _flow(program)
    facts = FileFacts(
        file=path.name,
        format="savedmodel",
        producer=program.file.producer,
        operators=program.file.operators,
        weight_bytes=sum(variable.value.nbytes for variable in program.file.variables if not variable.is_state),
        external=program.file.external,
        depends=depends,
    )
    values = [variable.value for variable in program.file.variables if variable.is_state]
    before = [state.before for state in program.states]
    after = [TensorflowArray(state.after, state.before.shape, state.before.dtype) for state in program.states]
    return build_description(
        facts,
        [_array(array, "input") for array in (*program.inputs, *before)],
        [_array(array, "output") for array in (*program.outputs, *after)],
        flow=flow,
        known=[StatePair(state.before.name, state.after, "traced") for state in program.states],
        starts={array.name for array, value in zip(before, values, strict=True) if value.any()},
    )


def _flow(program: SavedModelProgram) -> tuple[dict[str, tuple[str, ...]], Flow]:
    """The inputs and states that each output and next state is computed from, and of which they are made by moving
    data."""
    file = program.file
    (call,) = file.graph.node
    changed = [variable for variable in file.variables if variable.is_state]
    names = {_node(info.name): array.name for array, info in zip(program.inputs, file.inputs.values(), strict=True)}
    names |= {_node(saved.tensor): s.before.name for s, saved in zip(program.states, changed, strict=True)}
    arguments = [names.get(_node(value), "") for value in call.input if not value.startswith("^")]
    function = call.attr["f"].func.name
    dependences = Dependences({each.signature.name: each for each in file.graph.library.function})
    results, written = dependences.results(function), dependences.written(function)
    loops = sum(file.operators[name] for name in ("While", "StatelessWhile"))
    flow = Flow(states=[OperatorState("While", "", None, None)] * loops, knows_moves=True)

    def named(places: list[int]) -> tuple[str, ...]:
        return tuple(arguments[place] for place in places if arguments[place])

    depends: dict[str, tuple[str, ...]] = {}
    for array, info in zip(program.outputs, file.outputs.values(), strict=True):
        computed, moved = results[int(info.name.partition(":")[2] or 0)]
        depends[array.name] = named(computed)
        for source in named(moved):
            flow.move(Value(OUTERMOST, source), Value(OUTERMOST, array.name))
    for state in program.states:
        depends[state.after] = named(written.get(arguments.index(state.before.name), []))
    return depends, flow


def _node(tensor: str) -> str:
    return tensor.partition(":")[0]


def _array(array: TensorflowArray, role: Role) -> ArrayDescription:
    return ArrayDescription(array.name, role, array.shape, array.dtype)
