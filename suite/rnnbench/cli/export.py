"""`rnnbench export`: the rows of a run in another format."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rnnbench.cli.options import RESULTS
from rnnbench.cli.output import tell


@click.command(short_help="Write a run's rows as CSV or JSON Lines.")
@click.argument("run")
@click.option(
    "--format",
    "name",
    default="csv",
    show_default=True,
    metavar="NAME",
    help="Format of the rows, for example csv or jsonl.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write. Without it, standard output.",
)
@RESULTS
def export(run: str, name: str, output: Path | None, results: Path) -> None:
    """Write one row for each trial of RUN: a folder, a name, or 'latest'.

    docs/results.md describes the columns.
    """
    from rnnbench.results import Store, StoreError
    from rnnbench.results.exports import EXPORTS

    if name not in EXPORTS:
        raise click.BadParameter(f"'{name}' is not one of {', '.join(EXPORTS)}", param_hint="--format")
    read = Store(results).read(run)
    for warning in read.warnings:
        tell(f"warning: {warning}", is_error=True)
    if output is None:
        EXPORTS[name].write(read.rows(), sys.stdout)
        return
    try:
        with output.open("w", encoding="utf-8", newline="") as stream:
            EXPORTS[name].write(read.rows(), stream)
    except OSError as error:
        raise StoreError(f"cannot write {output}: {error.strerror or error}; choose another file with -o") from error
