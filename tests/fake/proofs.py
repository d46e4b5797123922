"""Parameters of a test that `make test` leaves out, as others show their class: `make bench-rooms` has all."""

from __future__ import annotations

from typing import Any

import pytest


def for_proof(*values: Any) -> list[Any]:
    """These values, or tuples of values, for the proof alone."""
    return [
        pytest.param(*value, marks=pytest.mark.proof)
        if isinstance(value, tuple)
        else pytest.param(value, marks=pytest.mark.proof)
        for value in values
    ]
