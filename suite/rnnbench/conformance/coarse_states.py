"""Whether a state is as fine as its type, where a model file has it in a wider type than its inputs and outputs.

The tolerance is that of the narrower type there, and so it does not show a state that is rounded to that type.
"""

from __future__ import annotations

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.rnn import DTYPES, Arithmetic, rounded, run_in

FEWEST = 4
"""Numbers of a state that must be finer than the narrower type. One number of float32 in 8,192 is one of float16."""


def coarse_state(reference: ReferenceTrajectories, steps: int, state: Arrays) -> str:
    """What is wrong with the state after the stream's first steps; empty if nothing is.

    All its numbers are of the narrower type, although half of those that the reference has in the file's types are not.
    """
    trial = reference.trial
    wide = {name: trial.model.state_dtype(name, trial.dtype) for name in state}
    finer = {name: _finer(state[name], trial.dtype) for name, dtype in wide.items() if _is_wider(dtype, trial.dtype)}
    coarse = [name for name, count in finer.items() if count == 0]
    if not coarse:
        return ""
    arithmetic = Arithmetic(trial.model.arithmetic_of(trial.dtype))
    own = run_in(arithmetic, trial.model, reference.weights, reference.x[:steps]).final
    for name in coarse:
        if _finer(own[name].astype(wide[name]), trial.dtype) >= max(FEWEST, own[name].size / 2):
            return f"state {name} is {wide[name]}, and all its numbers are of {trial.dtype}: it was rounded to that"
    return ""


def _is_wider(dtype: str, other: str) -> bool:
    return dtype in DTYPES and DTYPES[dtype].digits > DTYPES[other].digits


def _finer(array: np.ndarray, dtype: str) -> int:
    """How many of the numbers are none of `dtype`."""
    return int(np.sum(rounded(array, dtype) != array))
