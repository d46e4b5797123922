"""The command line: it parses options and calls the library. Heavy imports are inside the commands that need them.

Each command has a file of its name; COMMANDS has all of them. `options` has the options that commands share, `ending`
ends every command, and `exit_status` has the status of a command that ran trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

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
from rnnbench.cli.one_value import OneValueGroup

COMMANDS: dict[str, tuple[click.Command, ...]] = {
    "Get started": (doctor.doctor, backends.backends, new.new, inspect.inspect, list_command.list_trials),
    "Measure and check": (run.run, check.check, ab.ab, bisect.bisect, merge.merge),
    "Read results": (report.report, compare.compare, explain.explain, export.export),
    "Follow versions over time": (night.night, history.history, triage.triage, site.site, publish.publish),
    "Others": (repro.repro, cache.cache, schema.schema),
}
"""Every command, by section of the help and in its order."""


class Sections(OneValueGroup):
    """A group whose help lists its commands in the sections of COMMANDS."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _broken_pipe_is_raised():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _broken_pipe_is_raised():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{c.name!s:{width}}", c.get_short_help_str(limit=100)) for c in commands])


@contextmanager
def _broken_pipe_is_raised() -> Iterator[None]:
    """Leave a reader that has gone to `ending`. Click exits with 1 where the error has its number."""
    try:
        yield
    except BrokenPipeError as error:
        raise BrokenPipeError("nobody reads the output") from error


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rnnbench")
def cli() -> None:
    """Compare how recurrent networks run in compilers and runtimes.

    Every trial is built, checked against a float64 reference, timed and recorded.

    Example: rnnbench run cases/smoke.yaml --backend=iree

    \b
    Exit status:
      0    everything went as expected
      1    something is nonconforming, or the command found what its help names
      2    a mistake in the command, a case or a named backend
      3    a trial failed
      130  interrupted
      141  nobody reads the output any more, as in `rnnbench list CASE | head`
    """


for _command in chain.from_iterable(COMMANDS.values()):
    cli.add_command(_command)


def main() -> None:
    """The entry point. A mistake of the user's prints one sentence and exits with status 2; a signal exits with 130."""
    end_well(lambda ending: cli(standalone_mode=False, obj=ending))
