"""The command line: options in, calls out. Heavy imports wait for the command that needs them."""

from __future__ import annotations

import signal
import sys

import click

from rnnbench import __version__
from rnnbench.cli import ab, check, doctor, export, results, run, survey


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rnnbench")
def cli() -> None:
    """Compare RNN execution strategies across compilers.

    Every trial is built, checked against a float64 reference, timed and recorded. Exit status: 0 all went as expected;
    1 something is nonconforming, or slower where that was to fail; 2 the command, a case or a named backend is wrong;
    3 a trial failed; 130 interrupted.
    """


for _command in (
    run.run,
    check.check,
    survey.list_trials,
    results.report,
    results.compare,
    export.export,
    ab.ab,
    survey.backends,
    doctor.doctor,
    survey.schema,
):
    cli.add_command(_command)


def main() -> None:
    """The entry point: what a user got wrong is told in a sentence, with exit status 2.

    SIGTERM, by which CI and `timeout` end a job, interrupts as Ctrl-C does: what is finished is kept.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cli()
    except Exception as error:
        from rnnbench.backends.registry import BackendError
        from rnnbench.cases import CaseError
        from rnnbench.reports import ReportError
        from rnnbench.results import StoreError
        from rnnbench.results.optional import MissingExtraError
        from rnnbench.run.environments import SideError

        if isinstance(error, BackendError | CaseError | MissingExtraError | ReportError | SideError | StoreError):
            click.echo(f"rnnbench: {error}", err=True)
            sys.exit(2)
        raise
