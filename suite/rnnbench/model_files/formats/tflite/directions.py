"""What each direction of a recurrent operator of both directions reads.

Sources: tensorflow/lite/kernels/bidirectional_sequence_rnn.cc and bidirectional_sequence_lstm.cc, Eval.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Read = tuple[np.ndarray, np.ndarray | None]
"""The sequence that a direction reads [steps, batch, input], and the auxiliary one beside it."""


def entering(x: np.ndarray, auxiliary: Any, time_major: bool, has_weights: bool) -> tuple[Read, Read]:
    """What the forward and the backward direction read, the latter from the end.

    An auxiliary input is read beside x where it has weights of its own. Without such weights it is what the backward
    direction reads in the place of x: the backward result of a layer before. x is time-major here.
    """
    if auxiliary is None:
        return (x, None), (x[::-1], None)
    aside = auxiliary if time_major else auxiliary.swapaxes(0, 1)
    return ((x, aside), (x[::-1], aside[::-1])) if has_weights else ((x, None), (aside[::-1], None))
