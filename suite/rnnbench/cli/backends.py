"""`rnnbench backends`: which backends there are, and what they support."""

from __future__ import annotations

import click

from rnnbench.cli.options import console


@click.command(short_help="Print the backends, their versions and what they support.")
def backends() -> None:
    """Print the installed backends with their versions and what each route supports, and how to install the others."""
    from rnnbench.plan import build_support_matrix
    from rnnbench.reports import print_support_matrix

    print_support_matrix(build_support_matrix(), console())
