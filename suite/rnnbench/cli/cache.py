"""`rnnbench cache`: what is kept from one run to the next."""

from __future__ import annotations

import os

import click

from rnnbench.cli.options import console
from rnnbench.cli.output import tell


@click.command(short_help="Show what is kept from one run to the next, or remove it.")
@click.option("--clear", is_flag=True, help="Remove everything that is kept.")
def cache(clear: bool) -> None:
    """Show what earlier runs left: the folder, programs by backend, results of checks, and reference trajectories.

    A later run of the same trial takes them from there and builds nothing. RNNBENCH_CACHE names another folder, and
    RNNBENCH_CACHE_SIZE sets its largest size: 4GiB by default, 0 for no cache. Entries that
    were used longest ago are removed first.
    """
    from rnnbench.cache import Cache
    from rnnbench.pipeline import CacheError, user_cache
    from rnnbench.reports import print_cache
    from rnnbench.spelling import count

    folder = user_cache()
    if os.path.lexists(folder.path) and not folder.path.is_dir():
        raise CacheError(f"{folder.path} is not a folder; RNNBENCH_CACHE names the folder")
    if not clear:
        print_cache(folder, Cache(folder).uses(), console())
        return
    removed = Cache(folder).clear() if folder.path.is_dir() else 0
    tell(f"{folder.path}: {count(removed, 'entry', 'entries')} removed")
