"""The section `model` of a case that runs a file."""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from rnnbench.model_files.description import FileDescription

Constant = bool | int | float


@dataclass(frozen=True)
class FileSection:
    """How a file is called."""

    file: str
    state: dict[str, str] = field(default_factory=dict)
    """The output that is the next value of each state input."""
    constants: dict[str, Constant | None] = field(default_factory=dict)
    """Values of inputs that are the same in every call. None is one that only the user knows."""
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


def section_yaml(section: FileSection) -> str:
    """The section as YAML, a key a line."""
    content = {key: value for key, value in vars(section).items() if value != {}}
    return "\n".join(["model:", *(f"  {key}: {_inline(value)}" for key, value in content.items())]) + "\n"


def _inline(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=float("inf"))
    return str(text).removesuffix("...\n").strip()
