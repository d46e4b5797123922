"""Finding a state that was rounded to a narrower dtype than its own.

Comparing values does not show this rounding where it is within the tolerance. A model file may have a state in a wider
dtype than its inputs and outputs, and the tolerance is that of the narrower one. And a step of bfloat16 is only 8 times
as large as one of float16.
"""

from __future__ import annotations

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.rnn import DTYPES, Arithmetic, rounded, run_in

FEWEST = 52
"""How many digits the narrower dtype must take from the state of a run in its own dtype, at the least: by chance, the
last 3 digits of one number of float16 in 8 are zero, so that it is one of bfloat16."""


def coarse_state(reference: ReferenceTrajectories, steps: int, state: Arrays) -> str:
    """A sentence if a state after the stream's first steps was rounded to a narrower dtype; otherwise empty.

    It was rounded if the narrower dtype has all of its numbers, and not half of those of a run in its own dtype.
    """
    trial = reference.trial
    own = {name: trial.model.state_dtype(name, trial.dtype) for name in state}
    coarse = [
        (name, narrow) for name, dtype in own.items() for narrow in _narrower(dtype) if not _finer(state[name], narrow)
    ]
    if not coarse:
        return ""
    arithmetic = Arithmetic(trial.model.arithmetic_of(trial.dtype))
    computed = run_in(arithmetic, trial.model, reference.weights, reference.x[:steps]).final
    for name, narrow in coarse:
        finer, size = _finer(rounded(computed[name], own[name]), narrow), computed[name].size
        if finer >= size / 2 and finer * (DTYPES[own[name]].digits - DTYPES[narrow].digits) >= FEWEST:
            return f"state {name} is {own[name]}, and all its numbers are of {narrow}: it was rounded to that"
    return ""


def _narrower(dtype: str) -> list[str]:
    """The dtypes of floats with fewer digits, the narrowest first: a wider one may have all of its numbers."""
    if dtype not in DTYPES:
        return []
    floats = sorted((other.digits, name) for name, other in DTYPES.items() if not other.base)
    return [name for digits, name in floats if digits < DTYPES[dtype].digits]


def _finer(array: np.ndarray, dtype: str) -> int:
    """How many of the numbers `dtype` does not have."""
    return int(np.sum(rounded(array, dtype) != array))
