"""The section `model:` of a case that runs a model file: `{file: my.onnx}`, and settings that the file lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from rnnbench.cases.errors import CaseError, Problem
from rnnbench.model_files import (
    FileDescription,
    FileNetwork,
    FileSection,
    ModelFileError,
    UserInputs,
    network_of,
    open_questions,
    section_of,
    sized,
    with_axes,
)
from rnnbench.optional import MissingExtraError
from rnnbench.rnn import Network, Size
from rnnbench.yaml_files import Source, TitleGenerator, dotted, problems_of

ReadModel = Callable[[Path], FileDescription]
"""Describes a model file. Raises ModelFileError, and MissingExtraError if the package that reads it is missing."""

USER_INPUT_KEYS = ("inputs", "expected", "ranges", "outputs")
"""Keys that have nothing to do with the file's axes, states and constants."""
Text = Annotated[StrictStr, Field(min_length=1, max_length=1_000)]
Axis = Annotated[StrictInt, Field(ge=0, le=15)]


class FileModelSection(BaseModel):
    """How a model file is called. What is not written is read from the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Text = Field(description="A model file (docs/model_files.md); its path from the folder of the case file.")
    state: dict[Text, Text] = Field(
        default={}, description="For each state input, the output that is its value in the next call."
    )
    constants: dict[Text, StrictBool | StrictInt | StrictFloat] = Field(
        default={}, description="Values of inputs that are the same in every call."
    )
    sizes: dict[Text, Size] = Field(
        default={}, description="Sizes that the file leaves open: by name, or as `input.1`, an array and an axis."
    )
    inputs: Text | None = Field(
        default=None, description="An .npz with the inputs; its path from the folder of the case file. Else drawn."
    )
    expected: Text | None = Field(
        default=None, description="An .npz with the outputs that these inputs must give; its path as that of inputs."
    )
    ranges: dict[Text, tuple[StrictInt, StrictInt]] = Field(
        default={}, description="Smallest and largest value of inputs of whole numbers, which are drawn."
    )
    outputs: list[Text] = Field(
        default=[], description="The outputs that are compared; empty: all. A compiler need not compute the others."
    )
    time: Axis | None = Field(default=None, description="The axis of time of the inputs; null: one call is one step.")
    batch: Axis | None = Field(default=None, description="The axis of the batch of the inputs; null: one row.")


class _WithModel(BaseModel):
    model: FileModelSection


def model_file_of(source: Source, folder: Path, read_model: ReadModel) -> tuple[Network | None, Source]:
    """The network of the model file that a case names, and the case without its settings of the file.

    The network is None if the case names no file. Raises CaseError.
    """
    whole = source.data if isinstance(source.data, dict) else {}
    section = whole.get("model")
    if not isinstance(section, dict) or ("file" not in section and section.get("network") != FileNetwork.network):
        return None, source
    written = _validated(source, {key: value for key, value in section.items() if key != "network"})
    path = folder / written.file
    try:
        description = read_model(path)
        called = _section(written, description)
        if questions := open_questions(called, sized(description, called.sizes), written.model_fields_set):
            raise ModelFileError("; ".join(f"{question.array}: {question.text}" for question in questions))
        network = network_of(path, called, description, _user_inputs(written, folder))
    except (ModelFileError, MissingExtraError) as error:
        reason = str(error).removeprefix(f"{path}: ")
        more = f"; `rnnbench inspect {path}` shows what it has" if path.exists() else ""
        raise CaseError([_problem(error, f"{reason}{more}", source)]) from error
    data: dict[str, Any] = {**whole, "model": {"network": network.network}}
    if isinstance(workload := whole.get("workload"), dict):
        data["workload"] = {"dtype": network.dtype, **workload}  # What is left out is read from the file.
    return network, replace(source, data=data)


def _problem(error: ModelFileError | MissingExtraError, message: str, source: Source) -> Problem:
    """A mistake at the key that has it, where the case has this key, and else at the file."""
    if isinstance(error, ModelFileError) and (key := ("model", *error.key)) in source.values and error.key:
        place = source.key_place(key) if error.is_name else source.place(key)
        return Problem(place, f"{dotted(key)}: {message}")
    return source.problem(("model", "file"), message)


def _user_inputs(written: FileModelSection, folder: Path) -> UserInputs:
    """The inputs, expected outputs and ranges that the case gives beside the file."""
    inputs, expected = (None if name is None else folder / name for name in (written.inputs, written.expected))
    return UserInputs(inputs, expected, written.ranges)


def _validated(source: Source, section: Mapping[str, object]) -> FileModelSection:
    try:
        return _WithModel.model_validate({"model": section}).model
    except ValidationError as error:
        schema = _WithModel.model_json_schema(schema_generator=TitleGenerator)
        raise CaseError(problems_of(error, source, schema)) from error


def _section(written: FileModelSection, description: FileDescription) -> FileSection:
    """The settings that the file has, replaced by those that the case has."""
    section = section_of(description, written.file)
    answers = {key: getattr(written, key) for key in written.model_fields_set if key not in ("file", *USER_INPUT_KEYS)}
    state = {before: after for before, after in section.state.items() if before not in written.constants}
    constants = {n: value for n, value in section.constants.items() if n not in {*written.state, *written.ranges}}
    answers["constants"] = {**constants, **written.constants}
    answers["state"] = {} if written.state == {} and "state" in answers else {**state, **written.state}
    return with_axes(
        replace(section, **answers, ranges=written.ranges, outputs=tuple(written.outputs)),
        description,
        written.model_fields_set,
    )
