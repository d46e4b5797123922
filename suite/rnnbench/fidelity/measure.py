"""What calling from Python costs: `bound` against each runtime's own tool, on the same artifact, in turn.

Both take short turns in one process, whose ratio is the median of its rounds' own; several fresh processes each load
the artifact anew. A ratio is the median of the processes', with the interval of these; other figures are medians over
the rounds of all of them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from rnnbench.backends import registry
from rnnbench.cases.trial import Limits, Measure, State, Strategy, Target, Trial
from rnnbench.measure.interval import interval_of
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights
from rnnbench.run.messages import request_of, write_trial
from rnnbench.run.prepare import affinity

LSTM = Model(cell="lstm", input=64, hidden=512)
CHUNKS = (1, 32)
TIMES = ("looped", "unrolled", "fused")
STATES: tuple[State, ...] = ("stitched", "stateful")
PROCESSES, ROUNDS, PIECE_S = 5, 6, 0.15
"""Fresh processes, turns in each, and seconds of one turn."""
MOST = 20
"""Most processes: as many as before are added while the interval of the ratio has the limit of a verdict in it."""
RATIO = 1.05
"""Most that `bound` may take of what the tool gives, from two steps a call on."""
SHARE = 0.05
"""At one step a call: most of the tool's figure that the two may differ by, beside an empty call from Python."""
LIMIT_S = 600.0

Rounds = list[list[float]]
"""Of one process: (bound, own, empty, swept) of each turn."""
Verdict = Literal["holds", "too far", "tool slower"]
"""`tool slower`: by more than `bound` may be. No fault of `bound`, and no proof of it either: what the tool does beside
the artifact must be known."""


@dataclass(frozen=True)
class Fidelity:
    """One program against its runtime's own tool; seconds per call, or why there are none."""

    target: str
    strategy: str
    chunk: int
    tool: str = ""
    bound: float = 0.0
    own: float = 0.0
    empty: float = 0.0
    """A call from Python that does nothing, again and again."""
    swept: float = 0.0
    """The same, each after a call of the program, with the interpreter where that leaves it. No verdict rests on it."""
    ratio: float = 0.0
    interval: tuple[float, float] | None = None
    """Of the ratio, from process to process; None of a single one."""
    difference: float = 0.0
    note: str = ""
    untimed: str = ""

    @property
    def allowed(self) -> float:
        """Seconds that the two may differ by."""
        return self.empty + SHARE * self.own if self.chunk == 1 else (RATIO - 1) * self.own

    @property
    def verdict(self) -> Verdict | None:
        """None where it was not timed."""
        if self.untimed:
            return None
        excess = self.difference if self.chunk == 1 else (self.ratio - 1) * self.own
        if abs(excess) <= self.allowed:
            return "holds"
        return "too far" if excess > 0 else "tool slower"

    @property
    def is_open(self) -> bool:
        """Whether more processes may change the verdict."""
        limit = self.allowed / self.own
        return self.interval is not None and any(
            self.interval[0] <= 1 + most <= self.interval[1] for most in (-limit, limit)
        )


def measure(
    targets: Sequence[Target], chunks: Sequence[int] = CHUNKS, states: Sequence[State] = STATES
) -> Iterator[Fidelity]:
    """Each target's first supported strategy that has one of these states, at each chunk, one after the other."""
    for target in targets:
        for chunk in chunks:
            yield _one(target, chunk, states)


def _one(target: Target, chunk: int, states: Sequence[State]) -> Fidelity:
    trial, environment = _trial(target, chunk, states)
    if trial is None:
        return Fidelity(str(target), "", chunk, untimed="no streaming strategy is supported here")
    known = Fidelity(str(target), str(trial.strategy), chunk)
    with tempfile.TemporaryDirectory(prefix="rnnbench-fidelity-") as cache:
        job = {
            "trial": write_trial(trial),
            "cache": cache,
            "affinity": affinity(trial.threads),
            "seconds": PIECE_S,
        }
        try:
            # This process builds, and what compiled is not what is timed.
            _run({**job, "rounds": 0}, environment, Path(cache))
            figure, processes = known, list[Rounds]()
            while not processes or (figure.is_open and len(processes) < MOST):
                answers = [_run({**job, "rounds": ROUNDS}, environment, Path(cache)) for _ in range(PROCESSES)]
                processes += [answer["rounds"] for answer in answers]
                figure = _summed(replace(known, tool=answers[0]["tool"], note=answers[0]["note"]), processes)
        except _UntimedError as error:
            return replace(known, untimed=str(error))
    return figure


def _summed(known: Fidelity, processes: Sequence[Rounds]) -> Fidelity:
    bound, own, empty, swept = (statistics.median(figures) for figures in zip(*chain(*processes), strict=True))
    ratios = [statistics.median(b / o for b, o, *_ in rounds) for rounds in processes]
    return replace(
        known,
        bound=bound,
        own=own,
        empty=empty,
        swept=swept,
        ratio=statistics.median(ratios),
        interval=interval_of(ratios),
        difference=statistics.median(b - o for b, o, *_ in chain(*processes)),
    )


def _trial(target: Target, chunk: int, states: Sequence[State]) -> tuple[Trial | None, dict[str, str]]:
    """The first strategy that the target supports, natively if it can be, and what its environment needs."""
    emulated: tuple[Trial | None, dict[str, str]] = (None, {})
    for state in states:
        for time in TIMES:
            strategy = Strategy(time, state, chunk)
            trial = Trial("fidelity", target, LSTM, strategy, chunk, 1, "float32", "cpu", 1, 0, Limits(), Measure())
            support = registry.support(target.backend, request_of(trial, Weights(())))
            if support.level == "native":
                return trial, dict(support.environment)
            if support.level == "emulated" and emulated[0] is None:
                emulated = trial, dict(support.environment)
    return emulated


class _UntimedError(RuntimeError):
    """Says why there are no figures."""


def _run(job: dict[str, Any], environment: dict[str, str], cache: Path) -> dict[str, Any]:
    read, write = os.pipe()
    log = cache / "log"
    with os.fdopen(read) as answer, log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rnnbench.run.fidelity_worker", str(write)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=[write],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        os.close(write)
        try:
            process.communicate(json.dumps(job).encode(), timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise _UntimedError(f"took more than {LIMIT_S:g} s") from None
        said = answer.read()
    if process.returncode or not said:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        raise _UntimedError(f"failed: {lines[-1] if lines else f'status {process.returncode}'}")
    found: dict[str, Any] = json.loads(said)
    if reason := found.get("no_tool"):
        raise _UntimedError(reason)
    return found
