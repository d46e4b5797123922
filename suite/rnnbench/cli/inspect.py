"""`rnnbench inspect`: what is in a model file, and how a case runs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.option_types import GivenPath
from rnnbench.cli.options import console
from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rnnbench.model_files import FileDescription, FileSection, StateCheck


@click.command(short_help="Print what is in a model file, and the section of a case that runs it.")
@click.argument("file", metavar="FILE", type=GivenPath())
@click.option(
    "--set",
    "answers",
    multiple=True,
    metavar="KEY=VALUE",
    help="What the file does not say: constants.NAME=VALUE, state.INPUT=OUTPUT, sizes.NAME=N, ranges.NAME=[0,99], "
    "outputs=[NAME], time=AXIS, batch=AXIS. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(file: Path, answers: tuple[str, ...], as_json: bool) -> None:
    """Print what is in FILE (.onnx, .tflite, .pt2, .keras, .h5, .pb, .mlir): operators, arrays, and what keeps a state.

    It ends with the section `model` of a case that runs the file. Once no question is open, the states are checked:
    the file is called in float64.

    The file is read and called in processes of their own, with limits of memory and time.

    Example: rnnbench inspect vad.onnx --set constants.sr=16000 --set time=null

    \b
    Exit status:
      0  nothing is wrong with the states, or questions are open
      1  a state is lost, or two halves of a stream differ from the whole
    """
    from rnnbench.model_files import (
        answered,
        keys_of,
        open_questions,
        section_of,
        section_yaml,
        sized,
        with_made_sizes,
    )
    from rnnbench.reports import print_description, print_state_check
    from rnnbench.worker import describe_file

    unsized = describe_file(file)
    section = answered(section_of(unsized, str(file)), unsized, answers)
    description = sized(unsized, section.sizes)
    questions = open_questions(section, description, keys_of(answers))
    check, unchecked = None, "answer the questions with --set first"
    if not questions:
        check, unchecked = _checked(file, description, section)
    if check is not None:
        section = with_made_sizes(section, check)
    if as_json:
        value = {"description": description, "questions": questions, "check": check, "unchecked": unchecked}
        _print_json({**value, "model": section})
    else:
        print_description(description, questions, console())
        print_state_check(check, unchecked, console())
        reason = "" if questions else _why_no_case(file, section, unsized, check, unchecked)
        _tell_section(section_yaml(section, answers), reason)
    sys.exit(1 if check is not None and not check.ok else 0)


def _checked(file: Path, description: FileDescription, section: FileSection) -> tuple[StateCheck | None, str]:
    """The check of the file's states; or None, and why there is none."""
    from rnnbench.model_files import ModelFileError
    from rnnbench.worker import check_file

    try:
        return check_file(file, description, section), ""
    except ModelFileError as error:
        return None, str(error)


def _tell_section(text: str, why_no_case: str) -> None:
    if why_no_case:
        tell(f"\nNo case runs it so: {why_no_case}\n\nThe section, as far as the file says it:\n\n{text}")
    else:
        tell(f"\nThe section of a case that runs it:\n\n{text}")


def _print_json(value: dict[str, object]) -> None:
    import json

    from pydantic import TypeAdapter

    click.echo(json.dumps(TypeAdapter(dict[str, object]).dump_python(value, mode="json"), indent=2))


def _why_no_case(
    file: Path, section: FileSection, description: FileDescription, check: StateCheck | None, unchecked: str
) -> str:
    """Why `rnnbench new` writes no case for this section; empty if it does. `unchecked` is why there is no check."""
    from rnnbench.cases import case_of_file
    from rnnbench.model_files import ModelFileError, UserInputs, fault_of, network_of

    try:
        case_of_file(section, file.stem, network_of(file, section, description, UserInputs(ranges=section.ranges)))
    except ModelFileError as error:
        return str(error)
    if check is not None:
        return fault_of(check, description, section)
    return f"it cannot be checked: {unchecked.removeprefix(f'{file}: ')}"
