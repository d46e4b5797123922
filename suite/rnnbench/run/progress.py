"""What a run shows while it goes on: a bar with the trial under way, and a line for each that has ended."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from rnnbench.cases.trial import Trial
from rnnbench.results.record import FAILURES, Record


class ProgressBar:
    """Drawn only when something changes, never from a thread of its own, which would run beside what is sampled."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def stage(self, trial: Trial, stage: str) -> None:
        short = f"{trial.target} {trial.strategy} h{trial.model.hidden} c{trial.strategy.chunk}"
        self._progress.update(self._task, description=f"{stage}: {short}", refresh=True)

    def finished(self, record: Record) -> None:
        if record.outcome != "unsupported":
            self._progress.console.print(_line(record))
        self._progress.advance(self._task)
        self._progress.refresh()


def _line(record: Record) -> Text:
    style = "red" if record.outcome in FAILURES or record.outcome == "nonconforming" else "green"
    line = Text.assemble((f"{record.outcome:<14}", style), record.trial.rpartition("-")[0].partition("/")[2])
    if record.timing.bound is not None:
        line.append(f"  {record.timing.bound.per_step * 1e6:.4g} µs/step")
    if record.reason:
        line.append(f"\n  {record.stage}: {record.reason}", "dim")
    return line
