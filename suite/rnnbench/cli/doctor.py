"""`rnnbench doctor`: checks the machine, and the way in which programs are called."""

from __future__ import annotations

import sys

import click

from rnnbench.cli.options import BACKEND, console
from rnnbench.cli.selection import Selection


@click.command(short_help="Check whether this machine is fit for benchmarking.")
@click.option(
    "--fidelity",
    is_flag=True,
    help="Compare bound calls with each runtime's own timing tool, on the same artifact.",
)
@BACKEND
def doctor(fidelity: bool, backends: tuple[str, ...]) -> None:
    """Check whether this machine is fit for benchmarking now, and list its devices with what disturbs each.

    With --fidelity, compare bound calls with each runtime's own timing tool instead.

    \b
    Exit status:
      0  nothing disturbs a measurement; with --fidelity, each difference is small
      1  there is a warning; with --fidelity, a difference is too large
    """
    if fidelity:
        from rnnbench.fidelity import measure_fidelity, print_fidelity

        targets = Selection((), backends).targets()
        sys.exit(0 if print_fidelity(measure_fidelity(targets), console()) else 1)
    if backends:
        raise click.UsageError("--backend needs --fidelity: it selects the backends to compare with their own tools")
    from rnnbench.devices import examine_devices
    from rnnbench.measure import examine_machine
    from rnnbench.plan import device_of_backends
    from rnnbench.reports import print_fitness

    fitness, devices = examine_machine(), examine_devices(device_of_backends)
    print_fitness(fitness, devices, console())
    sys.exit(1 if fitness.warnings or any([*device.warnings] for device in devices) else 0)
