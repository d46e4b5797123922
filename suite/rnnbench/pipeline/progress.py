"""The progress of a run: a bar with the current trial, and a line for each trial that has ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from threading import Event, RLock, Thread
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from rnnbench.cases import Trial
from rnnbench.reports import seconds
from rnnbench.results import FAILURES, Record, visible
from rnnbench.worker import called_while_waiting

SILENCE_S = 30.0
"""Time without a line after which a pipe, which shows no bar, gets one that says what goes on."""


@contextmanager
def told_again(doing: str) -> Iterator[None]:
    """Say on standard error what is done, at once and again after each SILENCE_S of waiting for other processes."""
    started = said = time.monotonic()

    def say_again() -> None:
        nonlocal said
        if (now := time.monotonic()) - said >= SILENCE_S:
            said = now
            _say(f"{_since(started)}  {doing}")

    _say(doing)
    with called_while_waiting(say_again):
        yield


@contextmanager
def told_if_long(doing: str) -> Iterator[None]:
    """Say on standard error what this process does, after each SILENCE_S. A thread says it: nothing may be timed."""
    started, is_over = time.monotonic(), Event()

    def say_again() -> None:
        while not is_over.wait(SILENCE_S):
            _say(f"{_since(started)}  {doing}")

    thread = Thread(target=say_again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # Nobody reads it.
        print(visible(text), file=sys.stderr, flush=True)


def _since(started: float) -> timedelta:
    return timedelta(seconds=round(time.monotonic() - started))


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
        self._doing: dict[str, str] = {}
        self._waiting = ExitStack()
        self._lock = RLock()
        """Several threads wait for workers that check."""
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
        if not self._progress.console.is_terminal:
            self._waiting.enter_context(called_while_waiting(self._say_again))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.close()
        self._progress.stop()

    def stage(self, trial: Trial, stage: str) -> None:
        number = self._numbers.setdefault(trial.id, len(self._numbers) + 1)
        doing = visible(f"{stage}: {trial.target} {trial.strategy} {trial.model.label} c{trial.strategy.chunk}")
        self._progress.update(self._task, description=f"trial {number}, {doing}", refresh=True)
        self._doing.pop(trial.id, "")
        self._doing[trial.id] = f"trial {number} of {self._total}, {doing}"
        if not self._progress.console.is_terminal:
            self._say_again()

    def _say_again(self) -> None:
        """Say what began last of all that goes on, if nothing was said for long."""
        with self._lock:
            if self._doing and time.monotonic() - self._printed >= SILENCE_S:
                self._print(Text(f"{_since(self._started)}  {[*self._doing.values()][-1]}", "dim"))

    def finished(self, record: Record, side: str = "") -> None:
        self._doing.pop(record.trial, "")
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
