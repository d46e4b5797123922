"""The progress of a run: a bar with the current trial, and a line for each trial that has ended."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from rnnbench.cases import Trial
from rnnbench.reports import seconds
from rnnbench.results import FAILURES, Record, visible

SILENCE_S = 30.0
"""Longest time without a line in a pipe, which shows no bar, while one stage follows another."""


class NoProgress:
    """Shows nothing: for callers that are not at a terminal."""

    def stage(self, trial: Trial, stage: str) -> None:
        """Not shown."""

    def finished(self, record: Record, side: str = "") -> None:
        """Not shown."""


class ProgressBar:
    """The bar of a run. It is drawn only when something changes: a thread of its own would disturb what is sampled.

    Trials of a group end together, after all of them were built and sampled, so the bar shows the current stage too.
    Each of `total` trials ends once on every one of the `sides`.
    """

    def __init__(self, console: Console, total: int, sides: int = 1) -> None:
        self._numbers: dict[str, int] = {}
        self._total = total
        self._started = self._printed = time.monotonic()
        self._progress = Progress(
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total * sides)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def stage(self, trial: Trial, stage: str) -> None:
        number = self._numbers.setdefault(trial.id, len(self._numbers) + 1)
        doing = visible(f"{stage}: {trial.target} {trial.strategy} {trial.model.label} c{trial.strategy.chunk}")
        self._progress.update(self._task, description=f"trial {number}, {doing}", refresh=True)
        if not self._progress.console.is_terminal and time.monotonic() - self._printed >= SILENCE_S:
            elapsed = timedelta(seconds=round(time.monotonic() - self._started))
            self._print(Text(f"{elapsed}  trial {number} of {self._total}, {doing}", "dim"))

    def finished(self, record: Record, side: str = "") -> None:
        self._numbers.setdefault(record.trial, len(self._numbers) + 1)
        if record.outcome != "unsupported":
            self._print(_line(record, side))
        self._progress.advance(self._task)
        self._progress.refresh()

    def tell(self, sentence: str) -> None:
        """Print a sentence about the run as a whole."""
        self._print(Text(visible(sentence), "yellow"))

    def _print(self, line: Text) -> None:
        self._progress.console.print(line)
        self._printed = time.monotonic()


def _line(record: Record, side: str) -> Text:
    """The outcome, the bound latency of a step, and the trial's id. The case is left out: it may fill a line."""
    style = "red" if record.outcome in FAILURES or record.outcome == "nonconforming" else "green"
    line = Text.assemble(f"{side}  " if side else "", (f"{record.outcome:<3} ", style))
    if (bound := record.latency("bound")) is not None:
        line.append(f"{f'{seconds(bound.per_step)}/step':>11}  ")
    line.append(visible(record.trial.rpartition("-")[0].partition("/")[2]))
    if record.node:
        line.append(f"  on {visible(record.node)}", "dim")
    if record.not_believed:
        line.append(f"\n  not believed: {visible(record.not_believed)}", "bold red")
    if record.reason:
        line.append(f"\n  {visible(f'{record.stage}: {record.reason}')}", "dim")
    return line
