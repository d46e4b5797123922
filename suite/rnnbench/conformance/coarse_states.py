"""Finding a state that was rounded to a narrower dtype than a model file gives it.

A model file may have a state in a wider dtype than its inputs and outputs. The tolerance is that of the narrower dtype,
so comparing values does not show the rounding.
"""

from __future__ import annotations

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.rnn import DTYPES, Arithmetic, rounded, run_in

FEWEST = 4
"""How many numbers that the narrower dtype lacks the state must have in a run in the file's dtypes, at the least. By
chance, one number of float32 in 8,192 is a number of float16 too."""


def coarse_state(reference: ReferenceTrajectories, steps: int, state: Arrays) -> str:
    """A sentence if a state after the stream's first steps was rounded to the narrower dtype; otherwise empty.

    It was rounded if the narrower dtype has all of its numbers, and not half of those of a run in the file's dtypes.
    """
    trial = reference.trial
    wide = {name: trial.model.state_dtype(name, trial.dtype) for name in state}
    finer = {name: _finer(state[name], trial.dtype) for name, dtype in wide.items() if _is_wider(dtype, trial.dtype)}
    coarse = [name for name, count in finer.items() if count == 0]
    if not coarse:
        return ""
    arithmetic = Arithmetic(trial.model.arithmetic_of(trial.dtype))
    computed = run_in(arithmetic, trial.model, reference.weights, reference.x[:steps]).final
    for name in coarse:
        if _finer(computed[name].astype(wide[name]), trial.dtype) >= max(FEWEST, computed[name].size / 2):
            return f"state {name} is {wide[name]}, and all its numbers are of {trial.dtype}: it was rounded to that"
    return ""


def _is_wider(dtype: str, other: str) -> bool:
    return dtype in DTYPES and DTYPES[dtype].digits > DTYPES[other].digits


def _finer(array: np.ndarray, dtype: str) -> int:
    """How many of the numbers `dtype` does not have."""
    return int(np.sum(rounded(array, dtype) != array))
