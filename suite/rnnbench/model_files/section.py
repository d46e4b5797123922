"""The section `model` of a case that runs a file: what the file tells, and what its user answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import yaml

from rnnbench.model_files.description import (
    ArrayDescription,
    Constant,
    FileDescription,
    Question,
    Role,
    questions_of_axes,
    sized,
)
from rnnbench.model_files.errors import ModelFileError
from rnnbench.outside_text import safe_text
from rnnbench.spelling import did_you_mean

V = TypeVar("V")


@dataclass(frozen=True)
class FileSection:
    """How a file is called."""

    file: str
    state: dict[str, str] = field(default_factory=dict)
    """The output that is the next value of each state input."""
    constants: dict[str, Constant | None] = field(default_factory=dict)
    """Values of inputs that are the same in every call. None is one that only the user knows."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes that the file leaves open, by name or as `array.axis`."""
    time: int | None = None
    """Axis of time of the inputs; None where one call is one step."""
    batch: int | None = None
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Smallest and largest value of inputs of whole numbers, which are drawn."""
    outputs: tuple[str, ...] = ()
    """The outputs that are compared; empty: all that are no next states. The others are left out."""


def section_of(description: FileDescription, file: str) -> FileSection:
    """The section as far as the file tells. `file` is its path, as the case is to have it."""
    streams = description.of_role("input")
    return FileSection(
        file=file,
        state={pair.before: pair.after for pair in description.state},
        constants={array.name: 0 if array.is_empty else None for array in description.of_role("constant")},
        time=_time_of(streams[0], has_state=bool(description.state)) if streams else None,
        batch=streams[0].batch if streams else None,
    )


def answered(section: FileSection, description: FileDescription, answers: Sequence[str]) -> FileSection:
    """The section with answers such as `constants.sr=16000`, `sizes.T=576`, `time=0`. Raises ModelFileError."""
    return with_axes(_answered(section, description, answers), description, keys_of(answers))


def with_axes(section: FileSection, description: FileDescription, written: Collection[str]) -> FileSection:
    """The section with the axes of the first input that is left for it, but for keys that are written.

    Raises ModelFileError for sizes that the file does not leave open.
    """
    streams = _streams(section, sized(description, section.sizes))
    if not streams:
        return section
    time = section.time if "time" in written else _time_of(streams[0], has_state=bool(section.state))
    batch = section.batch if "batch" in written else streams[0].batch
    return replace(section, time=time, batch=batch)


def _time_of(stream: ArrayDescription, *, has_state: bool) -> int | None:
    """The axis of time of an input. With a state, a fixed number of steps in a call is one step."""
    if has_state and stream.time is not None and stream.shape is not None:
        size = stream.shape[stream.time]
        return None if isinstance(size, int) and size > 1 else stream.time
    return stream.time


@dataclass(frozen=True)
class _Answer:
    """What a user answers, as `constants.sr=16000`."""

    written: str
    """All of it, for messages."""
    key: str
    name: str
    """The name of the array or the size, behind the key; empty where the key stands alone."""
    text: str
    value: object
    """The text as YAML."""


def _answered(section: FileSection, description: FileDescription, answers: Iterable[str]) -> FileSection:
    names = {array.name for array in description.arrays}
    given: set[tuple[str, str]] = set()
    for written in answers:
        answer = _read_answer(written, names)
        if (answer.key, answer.name) in given:
            raise _answer_error(written, "it is answered twice; give one of the two")
        given.add((answer.key, answer.name))
        section = _with_answer(section, description, answer)
    return section


def _read_answer(written: str, names: Collection[str]) -> _Answer:
    key, name, equals, text = _parts(written, names)
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _answer_error(written, "its value is no YAML") from error
    if not equals:
        raise _answer_error(written, "expected KEY=VALUE")
    return _Answer(written, key, name, text.strip(), value)


def _with_answer(section: FileSection, description: FileDescription, answer: _Answer) -> FileSection:
    match answer.key:
        case "state" if not answer.name and not answer.value:
            return replace(section, state={})
        case "state":
            return _with_state(section, description, answer)
        case "constants":
            return _with_constant(section, description, answer)
        case "sizes" if answer.name:
            return _with_size(section, answer)
        case "ranges":
            return _with_range(section, description, answer)
        case "outputs" if not answer.name:
            return _with_outputs(section, description, answer)
        case "time" | "batch" if not answer.name:
            return _with_axis(section, answer)
    raise _answer_error(
        answer.written, "the keys are state.NAME, constants.NAME, sizes.NAME, ranges.NAME, outputs, time and batch"
    )


def _with_state(section: FileSection, description: FileDescription, answer: _Answer) -> FileSection:
    _require(answer, description, answer.name, "input", "state_in", "constant")
    outputs = [array.name for array in description.of_role("output", "state_out")]
    after = answer.text if answer.text in outputs else str(answer.value)  # YAML would read 012 as a number.
    _require(answer, description, after, "output", "state_out")
    others = {before: other for before, other in section.state.items() if other != after}
    constants = _without(section.constants, answer.name)
    return replace(section, state={**others, answer.name: after}, constants=constants)


def _with_constant(section: FileSection, description: FileDescription, answer: _Answer) -> FileSection:
    _require(answer, description, answer.name, "input", "state_in", "constant")
    if not isinstance(answer.value, Constant):
        raise _answer_error(answer.written, "a constant is a number, true or false")
    state = _without(section.state, answer.name)
    return replace(section, state=state, constants={**section.constants, answer.name: answer.value})


def _with_size(section: FileSection, answer: _Answer) -> FileSection:
    if type(answer.value) is not int or answer.value < 1:
        raise _answer_error(answer.written, "a size is 1, 2, 3 …")
    return replace(section, sizes={**section.sizes, answer.name: answer.value})


def _with_range(section: FileSection, description: FileDescription, answer: _Answer) -> FileSection:
    _require(answer, description, answer.name, "input", "constant")
    match answer.value:
        case [int(low), int(high)] if type(low) is int and type(high) is int:
            constants = _without(section.constants, answer.name)
            return replace(section, ranges={**section.ranges, answer.name: (low, high)}, constants=constants)
    raise _answer_error(answer.written, "a range is two whole numbers, as in [0, 99]")


def _with_outputs(section: FileSection, description: FileDescription, answer: _Answer) -> FileSection:
    if not (isinstance(answer.value, list) and answer.value):
        raise _answer_error(answer.written, "the outputs that are compared are a list, as in [y]")
    outputs = tuple(map(str, answer.value))
    for output in outputs:
        _require(answer, description, output, "output", "state_out")
    return replace(section, outputs=outputs)


def _with_axis(section: FileSection, answer: _Answer) -> FileSection:
    axis = answer.value
    if not (axis is None or (type(axis) is int and axis >= 0)):
        raise _answer_error(answer.written, "an axis is 0, 1, 2 …, or null")
    return replace(section, time=axis) if answer.key == "time" else replace(section, batch=axis)


def _without(values: Mapping[str, V], name: str) -> dict[str, V]:
    return {key: value for key, value in values.items() if key != name}


def open_questions(
    section: FileSection, description: FileDescription, written: Collection[str]
) -> tuple[Question, ...]:
    """The questions of the file that are left where its user has written these keys, of which `section` was made."""
    valued = (name for name, value in section.constants.items() if value is not None)
    paired = {*section.state, *section.ranges, *valued}
    guessed = not any(key.partition(".")[0] == "state" for key in written)
    unanswered = [q for q in description.questions if q.key in ("state", "constants") and (guessed or not q.is_guess)]
    unanswered = [question for question in unanswered if question.array not in paired]
    unclear = {question.array for question in unanswered if question.key == "state"}
    streams = _streams(section, description)
    # An input that may be a state is asked for its axes only once it is known to be none.
    certain = [array for array in streams if array.name not in unclear] or streams
    axes = [question for question in questions_of_axes(certain) if question.key not in written]
    return (*unanswered, *axes)


def _streams(section: FileSection, description: FileDescription) -> list[ArrayDescription]:
    """The inputs that are new in each call."""
    inputs = description.of_role("input", "state_in", "constant")
    return [array for array in inputs if array.name not in {*section.state, *section.constants}]


def keys_of(answers: Iterable[str]) -> set[str]:
    """The keys of answers `KEY=VALUE`."""
    return {_key(answer.partition("=")[0]) for answer in answers}


def _parts(answer: str, names: Collection[str]) -> tuple[str, str, str, str]:
    """The key, the name in it, the equals sign and the value. A name of the file may have equals signs, too."""
    for place in (place for place, sign in enumerate(answer) if sign == "="):
        key, _, name = _key(answer[:place]).partition(".")
        if name in names:
            return key, name, "=", answer[place + 1 :]
    written, equals, text = answer.partition("=")
    key, _, name = _key(written).partition(".")
    return key, name, equals, text


def _key(written: str) -> str:
    """The key of an answer. It may be written as in a case, where it is in the section `model`."""
    return written.strip().removeprefix("model.")


def section_yaml(section: FileSection, answers: Iterable[str] = ()) -> str:
    """The section as YAML, a key a line. That there is no state is written where an answer says so."""
    written_empty = {"state"} & keys_of(answers)
    content = {key: value for key, value in vars(section).items() if value not in ({}, ()) or key in written_empty}
    return "\n".join(["model:", *(f"  {key}: {_inline(value)}" for key, value in content.items())]) + "\n"


def _inline(value: object) -> str:
    value = list(value) if isinstance(value, tuple) else value
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**31)
    return text.removesuffix("...\n").strip()


class _Dumper(yaml.SafeDumper):
    """Texts stand in quotes but for plain words: what is a number depends on the version of YAML, such as 1e3."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = text[:1].isalpha() or text[:1] in "_./"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if plain else "'")


_Dumper.add_representer(str, _text)


def _require(answer: _Answer, description: FileDescription, name: str, *roles: Role) -> None:
    """Raises ModelFileError where the file has no array of this name in any of these roles."""
    names = [array.name for array in description.of_role(*roles)]
    if name not in names:
        kind = "output" if "output" in roles else "input"
        hint = did_you_mean(name, names) or f"it has {', '.join(names)}"
        raise _answer_error(answer.written, f"the file has no {kind} '{safe_text(name, 80)}'; {hint}")


def _answer_error(answer: str, what: str) -> ModelFileError:
    return ModelFileError(f"--set {safe_text(answer, 200)}: {what}")
