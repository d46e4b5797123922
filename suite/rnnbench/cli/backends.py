"""`rnnbench backends`: which backends there are, and what they support."""

from __future__ import annotations

import click

from rnnbench.cli.options import console


@click.command(short_help="Print the backends, their versions and what they support.")
def backends() -> None:
    """Print the installed backends with their versions and what each route supports, and how to install the others."""
    from rnnbench.backends.support_matrix import support_matrix
    from rnnbench.reports.support_matrix import print_support_matrix

    print_support_matrix(support_matrix(), console())
