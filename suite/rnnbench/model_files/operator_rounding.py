"""How the result of an operator is rounded in an arithmetic, in whichever format the operator is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from rnnbench.rnn import Arithmetic

Kind = Literal["operation", "activation", "sum"]
"""One operation; a function whose float32 approximations are no better than that of a sigmoid; a sum of products."""


def rounded_result(
    arithmetic: Arithmetic,
    output: np.ndarray,
    kind: Kind,
    terms: int = 1,
    squares: Callable[[], np.ndarray] | None = None,
) -> np.ndarray:
    """The result of an operator, rounded. A sum has `terms` terms, and `squares` gives the sum of their squares."""
    # A row: an arithmetic that rounds at random takes the rows of a batch. What it gets may be overwritten.
    row = np.array(output).reshape(1, -1)
    if kind == "sum" and squares is not None and terms > 1:
        rounded = arithmetic.summed(row, lambda: squares().reshape(1, -1), terms)
    elif kind == "activation":
        rounded = arithmetic.activated(row)
    else:
        rounded = arithmetic(row)
    # An infinity, as masks have, is exact, and so is a NaN.
    result: np.ndarray = np.where(np.isfinite(output), rounded.reshape(output.shape), output)
    return result
