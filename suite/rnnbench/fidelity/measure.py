"""What calling from Python costs: `bound` against each runtime's own tool, on the same artifact, in turn.

Both take short turns in one process, whose ratio is the median of the rounds' ratios. Several fresh processes load the
artifact anew. A ratio is the median of the processes' ratios, with the interval of these. Other figures are medians
over the rounds of all processes.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

from rnnbench.backends import request_of
from rnnbench.cases import Limits, Measure, State, Strategy, Target, Trial
from rnnbench.fidelity.worker import MeasureRounds, Round, StartFidelity, ToolFacts
from rnnbench.measure import interval_of
from rnnbench.plan import support
from rnnbench.rnn import Model, Weights
from rnnbench.worker import Host, WorkerError, WorkerProcess, own_folder, worker_cores

LSTM = Model(cell="lstm", input=64, hidden=512)
CHUNKS = (1, 32)
TIMES = ("looped", "unrolled", "fused")
STATES: tuple[State, ...] = ("stitched", "stateful")
PROCESSES, ROUNDS, TURN_S = 5, 6, 0.15
"""Fresh processes, rounds in each, and seconds of one turn."""
MOST_PROCESSES = 20
"""PROCESSES more are started while the interval of the ratio contains the limit of its verdict, up to so many."""
RATIO = 1.05
"""Largest ratio of `bound` to what the tool gives, from two steps a call on."""
SHARE = 0.05
"""At one step a call: the share of the tool's figure that the two may differ by, beside an empty call from Python."""
LIMIT_S = 600.0

FidelityVerdict = Literal["holds", "too far", "tool slower"]
"""`tool slower`: the tool is slower by more than `bound` may be. That proves nothing about `bound`: the tool
does something beside the artifact."""


@dataclass(frozen=True)
class Fidelity:
    """One program against its runtime's own tool; seconds per call, or why there are none."""

    target: str
    strategy: str
    chunk: int
    tool: str = ""
    """Name of the runtime's own tool."""
    bound: float = 0.0
    tool_s: float = 0.0
    """What the tool gives."""
    empty: float = 0.0
    """A call from Python that does nothing, repeated."""
    empty_after_call: float = 0.0
    """The same, each after a call of the program, whose weights have passed through the caches. No verdict uses it."""
    ratio: float = 0.0
    """`bound` over the tool's figure."""
    interval: tuple[float, float] | None = None
    """95 % interval of the ratio, from process to process; None for a single one."""
    difference: float = 0.0
    """`bound` less the tool's figure."""
    note: str = ""
    """What the tool does in each call that `bound` does not."""
    unmeasured: str = ""
    """Why there are no figures."""
    failed: bool = False
    """Whether there are none because a process failed, and not because the runtime has no tool."""

    @property
    def allowed(self) -> float:
        """Seconds that the two may differ by."""
        return self.empty + SHARE * self.tool_s if self.chunk == 1 else (RATIO - 1) * self.tool_s

    @property
    def verdict(self) -> FidelityVerdict | None:
        """None where it was not measured."""
        if self.unmeasured:
            return None
        excess = self.difference if self.chunk == 1 else (self.ratio - 1) * self.tool_s
        if abs(excess) <= self.allowed:
            return "holds"
        return "too far" if excess > 0 else "tool slower"

    @property
    def is_undecided(self) -> bool:
        """Whether more processes may change the verdict."""
        limit = self.allowed / self.tool_s
        return self.interval is not None and any(
            self.interval[0] <= 1 + most <= self.interval[1] for most in (-limit, limit)
        )


def measure_fidelity(
    targets: Sequence[Target], chunks: Sequence[int] = CHUNKS, states: Sequence[State] = STATES
) -> Iterator[Fidelity]:
    """Each target's first supported strategy that has one of these states, at each chunk, one after the other."""
    for target in targets:
        for chunk in chunks:
            yield _measure(target, chunk, states)


@dataclass(frozen=True)
class _TimedTrial:
    """The trial that is measured, and the variables that its process needs."""

    trial: Trial
    environment: Mapping[str, str]


def _measure(target: Target, chunk: int, states: Sequence[State]) -> Fidelity:
    chosen = _choose(target, chunk, states)
    if chosen is None:
        return Fidelity(str(target), "", chunk, unmeasured="no streaming strategy is supported here")
    unmeasured = Fidelity(str(target), str(chosen.trial.strategy), chunk)
    with own_folder() as folder:
        try:
            # The first process builds. What compiled is not what is timed.
            _run_process(chosen, folder, rounds=0)
            figure, processes = unmeasured, list[Sequence[Round]]()
            while not processes or (figure.is_undecided and len(processes) < MOST_PROCESSES):
                for _ in range(PROCESSES):
                    tool, rounds = _run_process(chosen, folder, ROUNDS)
                    processes.append(rounds)
                figure = summarise(replace(unmeasured, tool=tool.name, note=tool.note), processes)
        except WorkerError as error:
            return replace(unmeasured, unmeasured=error.reason, failed=error.outcome != "unsupported")
    return figure


def _run_process(chosen: _TimedTrial, folder: Path, rounds: int) -> tuple[ToolFacts, Sequence[Round]]:
    """The tool and the figures of one fresh process. Raises WorkerError."""
    start = StartFidelity(chosen.trial, folder, worker_cores(chosen.trial))
    host = Host(folder / "log", {"OMP_NUM_THREADS": "1", **chosen.environment})
    worker = WorkerProcess("rnnbench.fidelity.worker", start, host)
    try:
        tool = worker.ready(LIMIT_S)
        return tool, worker.ask(MeasureRounds(rounds, TURN_S), LIMIT_S).rounds
    finally:
        worker.close()


def summarise(figure: Fidelity, processes: Sequence[Sequence[Round]]) -> Fidelity:
    """`figure` with the figures of these rounds [processes, rounds]."""
    every = list(chain(*processes))
    ratios = [statistics.median(r.bound / r.tool for r in rounds) for rounds in processes]
    return replace(
        figure,
        bound=statistics.median(r.bound for r in every),
        tool_s=statistics.median(r.tool for r in every),
        empty=statistics.median(r.empty for r in every),
        empty_after_call=statistics.median(r.empty_after_call for r in every),
        ratio=statistics.median(ratios),
        interval=interval_of(ratios),
        difference=statistics.median(r.bound - r.tool for r in every),
    )


def _choose(target: Target, chunk: int, states: Sequence[State]) -> _TimedTrial | None:
    """The first strategy that the target supports, natively if it can be; None where it supports none."""
    emulated: _TimedTrial | None = None
    for state in states:
        for time in TIMES:
            strategy = Strategy(time, state, chunk)
            trial = Trial("fidelity", target, LSTM, strategy, chunk, 1, "float32", "cpu", 1, 0, Limits(), Measure())
            answer = support(target.backend, request_of(trial, Weights(())))
            if answer.level == "native":
                return _TimedTrial(trial, answer.environment)
            if answer.level == "emulated" and emulated is None:
                emulated = _TimedTrial(trial, answer.environment)
    return emulated
