"""`rnnbench export`: a run in the formats of other tools."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from rnnbench.cli.option_types import GivenPath
from rnnbench.cli.options import RESULTS, require_replaceable
from rnnbench.cli.output import tell, tell_warnings, written

if TYPE_CHECKING:
    from rnnbench.results import Run
    from rnnbench.results.exports import BinaryExport, Export


class ExportCommand(click.Command):
    """A command whose help lists the formats."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rnnbench.results.exports import EXPORTS

        with formatter.section("Formats"):
            formatter.write_dl([(export.name, export.description) for export in EXPORTS.values()])


@click.command(cls=ExportCommand, short_help="Write a run in the format of another tool.")
@click.argument("run")
@click.option("--format", "name", default="csv", show_default=True, metavar="NAME", help="One of the formats below.")
@click.option(
    "-o",
    "--output",
    type=GivenPath(),
    help="File to write; for asv, folder.  [default: standard output]",
)
@RESULTS
def export(run: str, name: str, output: Path | None, results: Path) -> None:
    """Write RUN, which is a folder, a name, or 'latest', in the format of another tool.

    docs/exports.md says which command reads each format, and what becomes of trials without figures.

    Example: rnnbench export latest --format=junit -o trials.xml
    """
    from rnnbench.results import Store, StoreError, sound
    from rnnbench.results.exports import EXPORTS, FolderExport
    from rnnbench.spelling import hint

    if output is not None and not output.is_dir():
        require_replaceable(output, "-o")
    if name not in EXPORTS:
        raise click.BadParameter(f"unknown format '{name}'; {hint(name, EXPORTS)}", param_hint="--format")
    chosen = EXPORTS[name]
    if isinstance(chosen, FolderExport) and output is None:
        raise click.UsageError(f"{name} is a folder of files; name it with -o FOLDER")
    read = Store(results).read(run)
    (exported,), impossible = sound([read])
    tell_warnings((*read.warnings, *impossible))
    try:
        if isinstance(chosen, FolderExport):
            assert output is not None
            replaced = ", in place of the earlier export of this run" if chosen.write(exported, output) else ""
            tell(f"{name}  {output}{replaced}")
        elif output is None:
            _print(chosen, exported)
        else:
            _write_file(chosen, exported, output)
    except OSError as error:
        if output is None:
            raise
        raise StoreError(f"cannot write {output}: {error.strerror or error}; choose another place with -o") from error


def _print(chosen: Export | BinaryExport, run: Run) -> None:
    from rnnbench.results.exports import BinaryExport

    stream = sys.stdout.buffer
    if isinstance(chosen, BinaryExport) and stream.isatty():
        raise click.UsageError(f"{chosen.name} is not text; write it to a file with -o {run.name}{chosen.ending}")
    _write(chosen, run, stream)


def _write_file(chosen: Export | BinaryExport, run: Run, file: Path) -> None:
    """Write the file as a whole. If that fails, the earlier file stays."""
    from rnnbench.disk import followed, write_given
    from rnnbench.results import StoreError

    if file.is_dir():
        raise StoreError(f"{file} is a folder; name a file in it, for example -o {file / run.name}{chosen.ending}")
    if not file.exists() and not followed(file).parent.is_dir():
        raise StoreError(f"cannot write {file}: its folder does not exist; make it, or choose another place with -o")
    with written(chosen.name, file):
        write_given(file, lambda stream: _write(chosen, run, stream))


def _write(chosen: Export | BinaryExport, run: Run, stream: BinaryIO) -> None:
    from rnnbench.results.exports import BinaryExport

    if isinstance(chosen, BinaryExport):
        chosen.write(run, stream)
        stream.flush()
    else:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        try:
            chosen.write(run, text)
        finally:
            text.detach()
