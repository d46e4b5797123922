"""The section `model` of a case that runs a file: what the file tells, and what its user answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import yaml

from rnnbench.model_files.description import Constant, FileDescription, Question, Role
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


def section_of(description: FileDescription, file: str) -> FileSection:
    """The section as far as the file tells. `file` is its path, as the case is to have it."""
    streams = description.of_role("input")
    return FileSection(
        file=file,
        state={pair.before: pair.after for pair in description.state},
        constants={array.name: None for array in description.of_role("constant")},
        time=streams[0].time if streams else None,
        batch=streams[0].batch if streams else None,
    )


def answered(section: FileSection, description: FileDescription, answers: Iterable[str]) -> FileSection:
    """The section with answers such as `constants.sr=16000`, `sizes.T=576`, `time=0`. Raises ModelFileError."""
    for answer in answers:
        key, equals, text = answer.partition("=")
        key, _, name = key.strip().partition(".")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise _wrong(answer, "its value is no YAML") from error
        if not equals:
            raise _wrong(answer, "expected KEY=VALUE")
        if key == "state":
            _known(answer, description, name, "input", "state_in", "constant")
            _known(answer, description, str(value), "output", "state_out")
            others = {before: after for before, after in section.state.items() if after != value}
            section = replace(section, state={**others, name: str(value)})
        elif key == "constants":
            _known(answer, description, name, "input", "state_in", "constant")
            if not isinstance(value, Constant):
                raise _wrong(answer, "a constant is a number, true or false")
            section = replace(section, constants={**section.constants, name: value})
        elif key == "sizes" and name:
            if type(value) is not int or value < 1:
                raise _wrong(answer, "a size is 1, 2, 3 …")
            section = replace(section, sizes={**section.sizes, name: value})
        elif key in ("time", "batch") and not name:
            if not (value is None or (type(value) is int and value >= 0)):
                raise _wrong(answer, "an axis is 0, 1, 2 …, or null")
            section = replace(section, time=value) if key == "time" else replace(section, batch=value)
        else:
            raise _wrong(answer, "the keys are state.NAME, constants.NAME, sizes.NAME, time and batch")
    return section


def open_questions(
    section: FileSection, description: FileDescription, written: Collection[str]
) -> tuple[Question, ...]:
    """The questions of the file that are left where its user has written these keys, of which `section` was made."""
    paired = {*section.state, *(name for name, value in section.constants.items() if value is not None)}
    return tuple(
        question
        for question in description.questions
        if not (question.key in written and question.key in ("time", "batch"))
        and not (question.key in ("state", "constants") and question.array in paired)
    )


def keys_of(answers: Iterable[str]) -> set[str]:
    """The keys of answers `KEY=VALUE`."""
    return {answer.partition("=")[0].strip() for answer in answers}


def section_yaml(section: FileSection) -> str:
    """The section as YAML, a key a line."""
    content = {key: value for key, value in vars(section).items() if value != {}}
    return "\n".join(["model:", *(f"  {key}: {_inline(value)}" for key, value in content.items())]) + "\n"


def _inline(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=float("inf"))
    return str(text).removesuffix("...\n").strip()


def _known(answer: str, description: FileDescription, name: str, *roles: Role) -> None:
    names = [array.name for array in description.of_role(*roles)]
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(names)}"
        kind = "output" if "output" in roles else "input"
        raise _wrong(answer, f"the file has no {kind} '{safe_text(name, 80)}'{hint}")


def _wrong(answer: str, what: str) -> ModelFileError:
    return ModelFileError(f"--set {safe_text(answer, 200)}: {what}")
