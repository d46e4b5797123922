"""The command line: it parses options and calls the library. Heavy imports are inside the commands that need them.

One file for each command, named as the command. `options` has what commands share, `exit_status` how they end.
"""

from __future__ import annotations

import signal
import sys

import click

from rnnbench import __version__
from rnnbench.cli import ab, backends, check, compare, doctor, export, report, run, schema
from rnnbench.cli import list as list_command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rnnbench")
def cli() -> None:
    """Compare how recurrent networks run in compilers and runtimes.

    Every trial is built, checked against a float64 reference, timed and recorded.

    Exit status: 0 everything went as expected; 1 something is nonconforming, or slower in a comparison; 2 a mistake in
    the command, a case or a named backend; 3 a trial failed; 130 interrupted.
    """


for _command in (
    run.run,
    check.check,
    list_command.list_trials,
    report.report,
    compare.compare,
    ab.ab,
    export.export,
    backends.backends,
    doctor.doctor,
    schema.schema,
):
    cli.add_command(_command)


def main() -> None:
    """The entry point. A user's mistake prints one sentence and exits with status 2.

    SIGTERM, which CI and `timeout` use to end a job, acts as Ctrl-C: finished trials are kept.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cli()
    except Exception as error:
        from rnnbench.backends import BackendError
        from rnnbench.cases import CaseError
        from rnnbench.optional import MissingExtraError
        from rnnbench.pipeline import SideError
        from rnnbench.reports import ReportError
        from rnnbench.results import StoreError

        if isinstance(error, BackendError | CaseError | MissingExtraError | ReportError | SideError | StoreError):
            click.echo(f"rnnbench: {error}", err=True)
            sys.exit(2)
        raise
