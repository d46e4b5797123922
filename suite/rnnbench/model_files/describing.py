"""The description of a file, from what its format tells: the states, the roles of arrays, and questions to the user."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rnnbench.model_files import limits
from rnnbench.model_files.axes import Axes, axes_by_name
from rnnbench.model_files.description import (
    ArrayDescription,
    Feature,
    FileDescription,
    Question,
    Role,
    StatePair,
    option,
    questions_of_axes,
)
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.flow import Flow
from rnnbench.model_files.state_pairs import pair_states, state_notes
from rnnbench.rnn import Activations

LONGEST_NAME = 100
"""Characters of a name from a file that are shown."""
NO_STATE = "No state was found, no recurrent operator and no loop: a call may be a function of its inputs alone."
_RECURRENT = re.compile(r"LSTM|GRU|RNN|SVDF|WHILE|SCAN|LOOP", re.IGNORECASE)
"""In the names of recurrent operators and loops of all formats."""
_LENGTHS = 4
"""Index of `sequence_lens` in the inputs of a recurrent operator."""


@dataclass(frozen=True)
class FileFacts:
    """What a file is, without its arrays. The fields are those of FileDescription."""

    file: str
    format: str
    producer: str
    operators: Counter[str]
    weight_bytes: int
    opsets: dict[str, int] = field(default_factory=dict)
    external: tuple[str, ...] = ()
    activations: Activations = ""
    features: tuple[Feature, ...] = ()
    depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def build_description(
    facts: FileFacts,
    inputs: Sequence[ArrayDescription],
    outputs: Sequence[ArrayDescription],
    flow: Flow | None = None,
    axes: Mapping[str, Axes] | None = None,
    known: Sequence[StatePair] = (),
    starts: Collection[str] = (),
    notes: Sequence[str] = (),
    unused: Collection[str] = (),
) -> FileDescription:
    """The description. `known` are the pairs that the format itself tells; the others are searched for.

    `starts` are the states whose values in the file are not zero, `notes` what the format itself has to say, and
    `unused` the inputs that no operator takes.

    Raises ModelFileError for arrays of too many axes or elements.
    """
    for array in (*inputs, *outputs):
        _require_within_limits(array)
    flow, known_axes = flow or Flow(), dict(axes or {})
    merged = list(_merged(inputs, unused))
    settled = {name for pair in known for name in (pair.before, pair.after)} | {question.array for question in merged}
    inputs_left, outputs_left = ([a for a in s if a.name not in settled and not a.is_empty] for s in (inputs, outputs))
    pairing = pair_states(flow, inputs_left, outputs_left, facts.depends)
    pairs = (*known, *pairing.pairs)
    before, after = {pair.before for pair in pairs}, {pair.after for pair in pairs}
    known_axes |= {pair.after: known_axes[pair.before] for pair in pairs if pair.before in known_axes}
    started = [replace(array, has_start=array.name in starts) for array in inputs]
    arrays = (
        *(_with_role(array, "state_in" if array.name in before else "input", known_axes) for array in started),
        *(_with_role(array, "state_out" if array.name in after else "output", known_axes) for array in outputs),
    )
    return FileDescription(
        **{**vars(facts), "operators": dict(facts.operators.most_common())},
        nodes=facts.operators.total(),
        arrays=arrays,
        state=pairs,
        questions=(*merged, *pairing.questions, *_questions(arrays)),
        notes=(*notes, *pairing.notes, *_notes(flow, arrays, facts.operators, [*merged, *pairing.questions])),
    )


def _require_within_limits(array: ArrayDescription) -> None:
    if len(array.shape or ()) > limits.AXES:
        raise ModelFileError(f"{array.name} has {len(array.shape or ())} axes; up to {limits.AXES} are read")
    if math.prod(dim for dim in array.shape or () if isinstance(dim, int)) > limits.ELEMENTS:
        raise ModelFileError(
            f"{array.name} has the shape {array.shown_shape}; up to {limits.ELEMENTS:,} elements are read"
        )


def _with_role(array: ArrayDescription, role: Role, axes: Mapping[str, Axes]) -> ArrayDescription:
    if role == "input" and (array.shape == () or array.is_empty):
        role = "constant"
    traced, by_name = axes.get(array.name, Axes()), axes_by_name(array.shape)
    time = by_name.time if traced.time is None else traced.time
    batch = by_name.batch if traced.batch is None else traced.batch
    return replace(array, role=role, time=None if role.startswith("state") else time, batch=batch)


def _merged(inputs: Sequence[ArrayDescription], unused: Collection[str]) -> Iterator[Question]:
    """Inputs that an exporter has merged with others.

    torch.export takes inputs that are one tensor in its example for one value: `model(x, (zeros, zeros))`.
    """
    for array in inputs:
        others = [
            other.name
            for other in inputs
            if other.name not in unused and (other.shape, other.dtype) == (array.shape, array.dtype)
        ]
        if array.name in unused and others and array.shape and not array.is_empty:
            text = (
                f"no operator takes it, and {' or '.join(others)} has its shape. torch.export merges inputs that are "
                "one tensor in the example, as in (zeros, zeros), so the file may take the one for both. If so, export "
                "it again with a tensor for each. If the network does not use it, it is a constant "
                f"({option(f'constants.{array.name}=0')})."
            )
            yield Question(array.name, "state", text)


def _questions(arrays: tuple[ArrayDescription, ...]) -> Iterator[Question]:
    outputs = [array for array in arrays if array.role == "output"]
    for array in arrays:
        if array.role == "constant" and not array.is_empty:
            after = [output.name for output in outputs if (output.shape, output.dtype) == (array.shape, array.dtype)]
            state = f" Or is it a state, and {' or '.join(after)} its next value (model.state)?" if after else ""
            text = f"it is one {array.dtype}. Which value has it in every call?{state}{_if_new(array)}"
            yield Question(array.name, "constants", text)
    yield from questions_of_axes([array for array in arrays if array.role == "input"])


def _if_new(array: ArrayDescription) -> str:
    """What to say of a whole number that is another one in each call."""
    if "float" in array.dtype:
        return ""
    return f" If it is new in each call, say which numbers it takes ({option(f'ranges.{array.name}=[0,1]')})."


def _if_a_state(arrays: tuple[ArrayDescription, ...]) -> str:
    """What to say where one input has the shape of the only output, as of a cell whose result is its next state."""
    inputs, outputs = ([array for array in arrays if array.role == role] for role in ("input", "output"))
    alike = [
        array
        for array in inputs
        if len(outputs) == 1 and (array.shape, array.dtype) == (outputs[0].shape, outputs[0].dtype)
    ]
    if len(alike) != 1 or len(inputs) == 1:
        return ""
    before, after = alike[0].name, outputs[0].name
    return f" If {before} is a state, and {after} its next value, say so: {option(f'state.{before}={after}')}"


def _notes(
    flow: Flow, arrays: tuple[ArrayDescription, ...], operators: Collection[str], questions: Collection[Question]
) -> Iterator[str]:
    inputs = {array.name for array in arrays if array.role not in ("output", "state_out")}
    lost = state_notes(flow, inputs, {array.name for array in arrays} - inputs)
    yield from lost
    if not (lost or questions or any(array.role == "state_in" for array in arrays)):
        recurrent = ", ".join(name for name in operators if _RECURRENT.search(name))
        yield (
            f"No state was found: {recurrent} begins anew in each call, unless an input is a state "
            "(--set state.INPUT=OUTPUT)"
            if recurrent
            else NO_STATE + _if_a_state(arrays)
        )
    if started := [array.name for array in arrays if array.has_start]:
        yield (
            f"{', '.join(started)} begins in the file with values that are not zero. Every stream begins at zero here, "
            "so its first outputs are not those that the file gives first"
        )
    length_values = (operator.inputs[_LENGTHS] for operator in flow.recurrent if _LENGTHS in operator.inputs)
    lengths = {name for value in length_values for name in flow.sources(value)}
    yield from (_told_of_lengths(name, arrays) for name in sorted(lengths & inputs))


def _told_of_lengths(name: str, arrays: Sequence[ArrayDescription]) -> str:
    """What to say of an input of lengths. A stream goes through all steps of a call, so each row has as many."""
    told = f"{name} gives the length of each sequence to a recurrent operator"
    stream = next((array for array in arrays if array.role == "input" and array.time is not None), None)
    if stream is None or stream.time is None or stream.shape is None:
        return f"{told}: it is the number of steps in a call ({option(f'constants.{name}=STEPS')})"
    size = stream.shape[stream.time]
    if isinstance(size, int):
        return f"{told}: it is the number of steps in a call ({option(f'constants.{name}={size}')})"
    answers = (f"constants.{name}=8", f"sizes.{size or f'{stream.name}.{stream.time}'}=8", "time=null")
    return f"{told}: choose the number of steps in a call, such as 8, and fix it ({' '.join(map(option, answers))})"
