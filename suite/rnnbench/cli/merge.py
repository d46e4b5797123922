"""`rnnbench merge`: the shards of one plan as one run."""

from __future__ import annotations

from pathlib import Path

import click

from rnnbench.cli.option_types import GivenPath
from rnnbench.cli.options import RESULTS, console
from rnnbench.cli.output import tell, tell_warnings


@click.command(short_help="Join the shards of one plan into one run.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@RESULTS
@click.option(
    "-o",
    "--output",
    type=GivenPath(file_okay=False),
    help="Folder of the merged run.  [default: a name made of the cases, in the folder for runs]",
)
@click.option("--incomplete", is_flag=True, help="Merge the shards that are there, though trials are missing.")
def merge(runs: tuple[str, ...], results: Path, output: Path | None, incomplete: bool) -> None:
    """Join RUN…, the shards that `rnnbench run --shard` made, into one run.

    Every command that takes a run takes the merged one. Each record keeps its machine: latencies of two machines are
    never ranked or compared. If trials are missing, nothing is written, unless --incomplete is given. A shard may be
    given again after it was resumed, and a merged run counts as its shards.

    Example: rnnbench merge shard-1 shard-2 -o results/whole
    """
    from rnnbench.pipeline import told_if_long
    from rnnbench.reports import print_shards
    from rnnbench.results import Store, StoreError, merge_shards, write_merged
    from rnnbench.spelling import count

    store = Store(results)
    with told_if_long(f"reading {count(len(runs), 'run')}"):
        merging = merge_shards([store.resolve(run) for run in runs])
    print_shards(merging.shards, merging.plan, console())
    tell_warnings(merging.warnings)
    if merging.missing and not incomplete:
        raise StoreError(
            "trials are missing, so nothing was written; add what is missing, or merge what is there with --incomplete"
        )
    with told_if_long(f"copying the files of {count(len(merging.shards), 'shard')}"):
        merged = write_merged(merging, results, output)
    tell(f"{merged.what}  {merged.run.path}")
