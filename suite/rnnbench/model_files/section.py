"""The section `model` of a case that runs a file: what the file tells, and what its user answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

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
        time=_time_of(streams[0], bool(description.state)) if streams else None,
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
    time = section.time if "time" in written else _time_of(streams[0], bool(section.state))
    batch = section.batch if "batch" in written else streams[0].batch
    return replace(section, time=time, batch=batch)


def _time_of(stream: ArrayDescription, has_state: bool) -> int | None:
    """The axis of time of an input. With a state, a fixed number of steps in a call is one step."""
    if has_state and stream.time is not None and stream.shape is not None:
        size = stream.shape[stream.time]
        return None if isinstance(size, int) and size > 1 else stream.time
    return stream.time


def _answered(section: FileSection, description: FileDescription, answers: Iterable[str]) -> FileSection:
    names = {array.name for array in description.arrays}
    for answer in answers:
        key, name, equals, text = _parts(answer, names)
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise _wrong(answer, "its value is no YAML") from error
        if not equals:
            raise _wrong(answer, "expected KEY=VALUE")
        if key == "state" and not name and not value:
            section = replace(section, state={})
        elif key == "state":
            _known(answer, description, name, "input", "state_in", "constant")
            outputs = [array.name for array in description.of_role("output", "state_out")]
            after = text.strip() if text.strip() in outputs else str(value)  # YAML would read 012 as a number.
            _known(answer, description, after, "output", "state_out")
            others = {one: other for one, other in section.state.items() if other != after}
            constants = {one: value for one, value in section.constants.items() if one != name}
            section = replace(section, state={**others, name: after}, constants=constants)
        elif key == "constants":
            _known(answer, description, name, "input", "state_in", "constant")
            if not isinstance(value, Constant):
                raise _wrong(answer, "a constant is a number, true or false")
            others = {one: other for one, other in section.state.items() if one != name}
            section = replace(section, state=others, constants={**section.constants, name: value})
        elif key == "sizes" and name:
            if type(value) is not int or value < 1:
                raise _wrong(answer, "a size is 1, 2, 3 …")
            section = replace(section, sizes={**section.sizes, name: value})
        elif key == "ranges":
            _known(answer, description, name, "input", "constant")
            if not (isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)):
                raise _wrong(answer, "a range is two whole numbers, as in [0, 99]")
            constants = {one: other for one, other in section.constants.items() if one != name}
            section = replace(section, ranges={**section.ranges, name: (value[0], value[1])}, constants=constants)
        elif key == "outputs" and not name:
            if not (isinstance(value, list) and value):
                raise _wrong(answer, "the outputs that are compared are a list, as in [y]")
            for output in map(str, value):
                _known(answer, description, output, "output", "state_out")
            section = replace(section, outputs=tuple(map(str, value)))
        elif key in ("time", "batch") and not name:
            if not (value is None or (type(value) is int and value >= 0)):
                raise _wrong(answer, "an axis is 0, 1, 2 …, or null")
            section = replace(section, time=value) if key == "time" else replace(section, batch=value)
        else:
            raise _wrong(
                answer, "the keys are state.NAME, constants.NAME, sizes.NAME, ranges.NAME, outputs, time and batch"
            )
    return section


def open_questions(
    section: FileSection, description: FileDescription, written: Collection[str]
) -> tuple[Question, ...]:
    """The questions of the file that are left where its user has written these keys, of which `section` was made."""
    valued = (name for name, value in section.constants.items() if value is not None)
    paired = {*section.state, *section.ranges, *valued}
    guessed = not any(key.partition(".")[0] == "state" for key in written)
    asked = [q for q in description.questions if q.key in ("state", "constants") and (guessed or not q.is_guess)]
    asked = [question for question in asked if question.array not in paired]
    unclear = {question.array for question in asked if question.key == "state"}
    streams = _streams(section, description)
    # Of what may be a state, the axes are asked once it is none.
    certain = [array for array in streams if array.name not in unclear] or streams
    axes = [question for question in questions_of_axes(certain) if question.key not in written]
    return (*asked, *axes)


def _streams(section: FileSection, description: FileDescription) -> list[ArrayDescription]:
    """The inputs that are new in each call."""
    given = description.of_role("input", "state_in", "constant")
    return [array for array in given if array.name not in {*section.state, *section.constants}]


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
    said = {"state"} & keys_of(answers)
    content = {key: value for key, value in vars(section).items() if value not in ({}, ()) or key in said}
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


def _known(answer: str, description: FileDescription, name: str, *roles: Role) -> None:
    names = [array.name for array in description.of_role(*roles)]
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(names)}"
        kind = "output" if "output" in roles else "input"
        raise _wrong(answer, f"the file has no {kind} '{safe_text(name, 80)}'{hint}")


def _wrong(answer: str, what: str) -> ModelFileError:
    return ModelFileError(f"--set {safe_text(answer, 200)}: {what}")
