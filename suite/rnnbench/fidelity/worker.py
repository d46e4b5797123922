"""The worker of a fidelity measurement: `bound`, the runtime's own tool and empty calls, in turn, in one process."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnbench.backends import Bound, NoToolError, Statistic, Tool, find, request_of, tool_for
from rnnbench.cases import Trial
from rnnbench.conformance import RING
from rnnbench.measure import sample_block, sample_cold
from rnnbench.rnn import draw_inputs, draw_weights
from rnnbench.worker import Command, Failed, run_worker


@dataclass(frozen=True)
class ToolFacts:
    """The tool that was found."""

    name: str
    note: str


@dataclass(frozen=True)
class StartFidelity(Command[ToolFacts]):
    """Build the trial's program, or load it from the cache, and find its runtime's own tool."""

    trial: Trial
    cache: Path
    affinity: tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """Seconds per call in one round."""

    bound: float
    tool: float
    empty: float
    empty_after_call: float


@dataclass(frozen=True)
class Rounds:
    """The rounds of one process, in the order in which they were measured."""

    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class MeasureRounds(Command[Rounds]):
    """Measure so many rounds, `seconds` for each of the turns of one round."""

    rounds: int
    seconds: float


class FidelityWorker:
    """A program with its ring bound, and its runtime's own tool. The first command says which."""

    def __init__(self) -> None:
        self._tool: Tool
        self._bound: Bound

    def start(self, start: StartFidelity) -> ToolFacts | Failed:
        """Build and bind the program. Failed as `unsupported` if its runtime has no tool for it."""
        trial = start.trial
        backend = find(trial.target.backend)
        backend.load()
        os.sched_setaffinity(0, start.affinity)
        request = request_of(trial, draw_weights(trial.model, trial.seed))
        program = backend.build(request, start.cache)
        try:
            self._tool = tool_for(trial.target.backend, program, request, start.cache)
        except NoToolError as error:
            return Failed("unsupported", str(error))
        chunk = trial.strategy.chunk
        x = draw_inputs(trial.model, RING * chunk, trial.batch, trial.seed)
        self._bound = program.open().bind([{"x": x[i : i + chunk]} for i in range(0, RING * chunk, chunk)])
        return ToolFacts(self._tool.name, self._tool.note)

    def measure(self, command: MeasureRounds) -> Rounds:
        return Rounds(tuple(self._round(command.seconds, reverse=number % 2 == 1) for number in range(command.rounds)))

    def _round(self, seconds: float, reverse: bool) -> Round:
        """One round. Every other one runs backwards, so that no turn always follows the same other one."""
        bound, tool = self._bound, self._tool
        turns: dict[str, Callable[[], float]] = {
            "bound": lambda: _summarise(sample_block(bound, bound.sync, seconds).seconds, tool.statistic),
            "tool": lambda: tool.seconds_per_call(seconds),
            "empty": lambda: _summarise(sample_block(tool.empty, _do_nothing, seconds / 4).seconds, tool.statistic),
            "empty_after_call": lambda: _empty_after_call(tool, bound, seconds / 2),
        }
        return Round(**{name: turns[name]() for name in (reversed(turns) if reverse else turns)})


def _empty_after_call(tool: Tool, bound: Bound, seconds: float) -> float:
    """An empty call after each call of the program, which is not timed."""

    def call_program() -> None:
        bound()
        bound.sync()

    return _summarise(sample_cold(tool.empty, _do_nothing, call_program, seconds).seconds, tool.statistic)


def _summarise(samples: np.ndarray, statistic: Statistic) -> float:
    return float(np.mean(samples) if statistic == "mean" else np.median(samples))


def _do_nothing() -> None:
    """An empty call is complete when it returns."""


def main() -> None:
    worker = FidelityWorker()
    run_worker({StartFidelity: worker.start, MeasureRounds: worker.measure})


if __name__ == "__main__":
    main()
