"""A counter that begins at 1: three calls give 2, 3, 4. Its state is saved, and another process goes on with 5, 6, 7.

    python docs/questions/counter.py TARGET FOLDER

TARGET is a backend with a route, as `tvm:relax`. FOLDER keeps the program and the state: say the same command again.
Each call has the same interface, x in and y out. What differs from call to call is the state in the program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from rnnbench import make_case
from rnnbench.backends import find, request_of
from rnnbench.plan import targets_of
from rnnbench.rnn import draw_weights

ONE = np.ones((1, 1, 1), np.float32)
"""x of one step, one stream and one number; and the state that the counter begins with."""


def main(target: str, folder: Path) -> None:
    case = make_case(
        name="counter",
        model={"cell": "counter", "input": 1, "hidden": 1},
        workload={"steps": 3, "chunk": 1},
        strategy={"time": "looped", "state": "stateful"},
    )
    (trial,) = case.trials(targets_of([target]))
    request = request_of(trial, draw_weights(trial.model, trial.seed))
    backend = find(trial.target.backend)
    support = backend.support(request)
    print(f"{target}: {support.level}. {support.reason}".strip())
    os.environ.update(support.environment)
    backend.load()
    session = backend.build(request, folder).open()
    saved = folder / "state.npz"
    session.set_state(dict(np.load(saved)) if saved.exists() else {"h": ONE})
    print(*(int(session.step({"x": ONE})["y"].item()) for _ in range(3)))
    np.savez(saved, **session.get_state())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
