"""`rnnbench doctor`: whether the machine, and the way programs are called, are fit to measure with."""

from __future__ import annotations

import sys

import click

from rnnbench.cli.options import BACKEND, Selection, console


@click.command(short_help="Say what speaks against measuring here and now.")
@click.option(
    "--fidelity", is_flag=True, help="Hold bound calls against each runtime's own tool, on the same artifact."
)
@BACKEND
def doctor(fidelity: bool, backends: tuple[str, ...]) -> None:
    """Say what speaks against measuring on this machine now; exit with 1 if something does.

    With --fidelity, time bound calls and each runtime's own tool in turn; exit with 1 if one of them is too far off.
    """
    if fidelity:
        from rnnbench.fidelity.measure import RATIO, SHARE, measure
        from rnnbench.reports.doctor import print_fidelity

        chosen = Selection((), backends, (), (), (), 0).targets(baseline=False)
        sys.exit(0 if print_fidelity(measure(chosen), console(), RATIO, SHARE) else 1)
    if backends:
        raise click.UsageError("--backend says whose fidelity is to be measured; give --fidelity, too")
    from rnnbench.measure.fitness import look
    from rnnbench.reports.doctor import print_fitness

    fitness = look()
    print_fitness(fitness, console())
    sys.exit(1 if fitness.warnings else 0)
