"""The command line: it parses options and calls the library. Heavy imports are inside the commands that need them.

One file for each command, named as the command. `options` has what commands share, `ending` how each
ends, `exit_status` the status of one that ran trials.
"""

from __future__ import annotations

import click

from rnnbench import __version__
from rnnbench.cli import (
    ab,
    backends,
    bisect,
    cache,
    check,
    compare,
    doctor,
    explain,
    export,
    history,
    inspect,
    merge,
    new,
    night,
    publish,
    report,
    repro,
    run,
    schema,
    site,
    triage,
)
from rnnbench.cli import list as list_command
from rnnbench.cli.ending import end_well


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rnnbench")
def cli() -> None:
    """Compare how recurrent networks run in compilers and runtimes.

    Every trial is built, checked against a float64 reference, timed and recorded.

    Exit status: 0 everything went as expected; 1 something is nonconforming, or a comparison found what
    --fail-on names; 2 a mistake in the command, a case or a named backend; 3 a trial failed; 130 interrupted.
    """


for _command in (
    run.run,
    check.check,
    list_command.list_trials,
    merge.merge,
    report.report,
    repro.repro,
    explain.explain,
    compare.compare,
    ab.ab,
    bisect.bisect,
    export.export,
    history.history,
    night.night,
    publish.publish,
    triage.triage,
    backends.backends,
    doctor.doctor,
    new.new,
    inspect.inspect,
    cache.cache,
    site.site,
    schema.schema,
):
    cli.add_command(_command)


def main() -> None:
    """The entry point. A mistake of the user's prints one sentence and exits with status 2; a signal exits with 130."""
    end_well(lambda ending: cli(standalone_mode=False, obj=ending))
