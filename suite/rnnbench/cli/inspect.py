"""`rnnbench inspect`: what is in a model file, and how a case runs it."""

from __future__ import annotations

from pathlib import Path

import click

from rnnbench.cli.options import console
from rnnbench.cli.output import tell


@click.command(short_help="Print what is in a model file, and the section of a case that runs it.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(file: Path, as_json: bool) -> None:
    """Print what is in FILE, an ONNX file: operators, inputs and outputs, and which of them carry a state.

    It ends with the section `model` of a case that runs the file, and with what only you know. The file is read in a
    process of its own, with limits of memory and time. Nothing in it is run.
    """
    from rnnbench.model_files import section_of, section_yaml
    from rnnbench.worker import describe_file

    description = describe_file(file)
    section = section_of(description, str(file))
    if as_json:
        from pydantic import TypeAdapter

        value = {"description": description, "model": section}
        click.echo(TypeAdapter(dict[str, object]).dump_json(value, indent=2).decode())
        return
    from rnnbench.reports import print_description

    print_description(description, console())
    tell(f"\nThe section of a case that runs it:\n\n{section_yaml(section)}")
