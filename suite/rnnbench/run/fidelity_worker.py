"""One process of a fidelity measurement: `bound`, the runtime's own tool and empty calls, in turn."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import Bound
from rnnbench.backends.fidelity import NoToolError, Statistic, own_tool
from rnnbench.backends.registry import find
from rnnbench.conformance import RING
from rnnbench.measure.sampling import sample_block, sample_cold
from rnnbench.rnn.weights import draw_inputs, draw_weights
from rnnbench.run.messages import read_trial, request_of


def main() -> None:
    """Read a job from stdin, do it, and write its figures to the descriptor in argv, apart from what is printed."""
    job = json.load(sys.stdin)
    with os.fdopen(int(sys.argv[1]), "w") as answer:
        json.dump(_measured(job), answer)


def _measured(job: dict[str, Any]) -> dict[str, Any]:
    trial, cache = read_trial(job["trial"]), Path(job["cache"])
    backend = find(trial.target.backend)
    backend.load()
    os.sched_setaffinity(0, job["affinity"])
    request = request_of(trial, draw_weights(trial.model, trial.seed))
    program = backend.build(request, cache)
    try:
        tool = own_tool(backend, program, request, cache)
    except NoToolError as error:
        return {"no_tool": str(error)}
    chunk = trial.strategy.chunk
    x = draw_inputs(trial.model, RING * chunk, trial.batch, trial.seed)
    bound = program.open().bind([{"x": x[i : i + chunk]} for i in range(0, RING * chunk, chunk)])
    seconds = job["seconds"]
    turns: dict[str, Callable[[], float]] = {
        "bound": lambda: _summed(bound, bound.sync, seconds, tool.statistic),
        "own": lambda: tool.seconds_per_call(seconds),
        "empty": lambda: _summed(tool.empty, _nothing, seconds / 4, tool.statistic),
        "swept": lambda: _swept(tool.empty, bound, seconds / 2, tool.statistic),
    }
    rounds = []
    for number in range(job["rounds"]):
        # There and back again, so that none is always the one that comes after another.
        order = list(turns)[:: -1 if number % 2 else 1]
        figures = {name: turns[name]() for name in order}
        rounds.append([figures[name] for name in turns])
    return {"tool": tool.name, "note": tool.note, "rounds": rounds}


def _summed(call: Callable[[], object], sync: Callable[[], object], seconds: float, statistic: Statistic) -> float:
    return _figure(sample_block(call, sync, seconds).seconds, statistic)


def _swept(empty: Callable[[], object], bound: Bound, seconds: float, statistic: Statistic) -> float:
    """An empty call after each call of the program, which is not timed."""

    def pass_over_the_weights() -> None:
        bound()
        bound.sync()

    return _figure(sample_cold(empty, _nothing, pass_over_the_weights, seconds).seconds, statistic)


def _figure(samples: np.ndarray, statistic: Statistic) -> float:
    return float(np.mean(samples) if statistic == "mean" else np.median(samples))


def _nothing() -> None:
    """An empty call is complete when it returns."""


if __name__ == "__main__":
    main()
