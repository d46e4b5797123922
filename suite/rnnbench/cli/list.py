"""`rnnbench list`: what would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rnnbench.cli.options import ANCHORS, NO_BASELINE, SHARD, load_anchors
from rnnbench.cli.output import tell
from rnnbench.cli.selection import Selection, selection

if TYPE_CHECKING:
    from rnnbench.plan import Shard


@click.command("list")
@selection
@SHARD
@NO_BASELINE
@ANCHORS
def list_trials(selection: Selection, shard: Shard | None, no_baseline: bool, anchors: str | None) -> None:
    """Print the id of every trial that would run, one per line.

    `rnnbench run` adds those of NumPy, its baseline. They are printed with --shard, or with --backend=numpy.

    Example: rnnbench list cases/smoke.yaml --backend=iree --filter=chunk=1

    With --shard, print the trials that `rnnbench run` with the same options runs: also the baseline's and the pinned
    anchors.
    """
    from rnnbench.plan import anchor_trials, shard_of
    from rnnbench.spelling import count

    cases = selection.load_cases()
    pinned = [trial for case in load_anchors(anchors, wanted=shard is not None) for trial in case.trials(())]
    if shard is None:
        trials = [*selection.select(cases, selection.targets(cases)), *pinned]
        summary = count(len(trials), "trial")
    else:
        whole = selection.select(cases, selection.targets(cases, baseline=not no_baseline, everywhere=True))
        whole += pinned
        part = shard_of(whole, shard, anchor_trials(whole))
        trials, summary = list(part.trials), part.sentence
    if trials:
        tell("\n".join(trial.id for trial in trials))
    tell(summary, is_error=True)
