"""`rnnbench new`: a case to begin with."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from rnnbench.cli.option_types import GivenPath, GivenText
from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rnnbench.model_files import FileSection


@click.command(short_help="Write a case, ready to run: for a cell, a network or a model file.")
@click.argument("what", type=GivenText())
@click.option("-o", "--output", required=True, type=GivenPath(), help="The case file to write.")
@click.option(
    "--set",
    "answers",
    multiple=True,
    metavar="KEY=VALUE",
    help="What a model file does not say, as for `rnnbench inspect`: constants.NAME=VALUE, time=AXIS, … "
    "May be repeated.",
)
def new(what: str, output: Path, answers: tuple[str, ...]) -> None:
    """Write a commented case for WHAT: a cell (lstm), a named network (rnnoise), or a file (my.onnx, …).

    A file that is there already stays as it is.

    Example: rnnbench new my.onnx -o my.yaml
    """
    from rnnbench.cases import case_of_network, names_of_networks
    from rnnbench.disk import write_text
    from rnnbench.spelling import hint

    names = names_of_networks()
    _require_free(output)
    name = re.sub(r"[^a-z0-9_.-]+", "_", output.stem.lower()).strip("_.-")[:64] or "mine"
    if what in names and answers:
        raise click.UsageError(f"--set completes a model file, and {what} is not a model file. Edit the case instead")
    if what in names:
        text = case_of_network(what, name)
    elif Path(what).suffix or os.sep in what or Path(what).exists():
        text = _of_file(Path(what), output, answers, name)
    else:
        raise click.UsageError(f"'{what}' is no cell, no network and no model file; {hint(what, names)}")
    _require_free(output)  # A model file may take minutes.
    write_text(output, text)
    tell(f"{output} is written. Run it: rnnbench run {quote(str(output))}")


def _require_free(output: Path) -> None:
    """Raises UsageError where something lies already: nothing is overwritten."""
    if os.path.lexists(output):
        raise click.UsageError(f"{output} is there already; give another name with -o")


def _of_file(file: Path, output: Path, answers: tuple[str, ...], name: str) -> str:
    from rnnbench.cases import case_of_file
    from rnnbench.model_files import (
        NO_STATE,
        ModelFileError,
        UserInputs,
        answered,
        fault_of,
        keys_of,
        network_of,
        open_questions,
        open_sizes,
        section_of,
        sized,
        with_made_sizes,
    )
    from rnnbench.worker import check_file, describe_file

    description = describe_file(file)
    # Links are resolved first: `..` of a linked folder is the parent of the link's target.
    written = os.path.relpath(file.parent.resolve() / file.name, output.parent.resolve())
    section = answered(section_of(description, written), description, answers)
    sizes_said = sized(description, section.sizes)
    if questions := open_questions(section, sizes_said, keys_of(answers)):
        listed = "; ".join(f"{question.array}: {question.text} ({question.option})" for question in questions)
        raise ModelFileError(f"{file}: the file does not say everything. {listed}")
    notes = [note for note in description.notes if not (section.state and note.startswith(NO_STATE))]

    def case(read: FileSection, failing_steps: Mapping[int, str]) -> str:
        network = network_of(file, read, description, UserInputs(ranges=read.ranges))
        return case_of_file(read, name, network, notes, answers, failing_steps)

    if not open_sizes(sizes_said, section):
        case(section, {})  # Refuse a file that no case can run before calls that may take long.
    check = check_file(file, sizes_said, section)  # Raises if the file cannot be computed.
    if fault := fault_of(check, description, section):
        raise ModelFileError(f"{file}: no case is written. {fault[:1].upper()}{fault[1:]}")
    failing = {steps: why.removeprefix(f"{file}: ") for steps, why in check.failing_steps.items()}
    text = case(with_made_sizes(section, check), failing)
    for note in notes:
        tell(f"note: {note}", is_error=True)
    return text
