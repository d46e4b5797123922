"""States that Inductor returns within a vector, which are copied to the start of one.

It returns an h that is a view of y's last row: of 127 units, that begins at 4 of 16 bytes. The last digit of MKL's
products depends on that, so that a state which was read and set again would give other numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

VECTOR = 16
"""Bytes. Products of MKL 2024.2 give other bits where an operand begins elsewhere (an AMD EPYC with AVX-512)."""


def may_split(states: Iterable[Tensor]) -> bool:
    """Whether one of these states, as a row of y, may begin within a vector."""
    return any(state.is_cpu and state[0].nbytes % VECTOR for state in states)


def of_their_own(states: Sequence[Tensor]) -> list[Tensor]:
    """The states that a call on the processor returned, each at the start of a vector."""
    return [state.clone() if state.data_ptr() % VECTOR else state for state in states]
