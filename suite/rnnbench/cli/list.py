"""`rnnbench list`: what would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rnnbench.cli.options import NO_BASELINE, SHARD, Selection, selection
from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rnnbench.plan import Shard


@click.command("list")
@selection
@SHARD
@NO_BASELINE
def list_trials(selection: Selection, shard: Shard | None, no_baseline: bool) -> None:
    """Print the id of every trial that would run, one per line.

    With --shard, those that `rnnbench run` with the same options runs, the baseline's included.
    """
    from rnnbench.plan import baseline_trials, shard_of
    from rnnbench.reports import count

    cases = selection.load_cases()
    if shard is None:
        trials = selection.select(cases, selection.targets(cases))
        told = count(len(trials), "trial")
    else:
        whole = selection.select(cases, selection.targets(cases, baseline=not no_baseline, everywhere=True))
        part = shard_of(whole, shard, baseline_trials(whole))
        trials, told = list(part.trials), part.sentence
    if trials:
        tell("\n".join(trial.id for trial in trials))
    tell(told, is_error=True)
