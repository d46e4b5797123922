"""What a format of model files is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from rnnbench.model_files.description import FileDescription
from rnnbench.outside_text import safe_text
from rnnbench.rnn import Arithmetic

NAMED = 3
"""Weights that a message names."""


class Oracle(ABC):
    """A model file in an arithmetic. Read and run it in a process with limits of memory and time."""

    def in_arithmetic(self, arithmetic: Arithmetic) -> Self:
        """The same file in another arithmetic. The file is not read again, and prepared once for arithmetics alike."""
        prepared = self._prepared
        if (other := prepared.get(arithmetic.alike)) is None:
            other = copy(self)
            other.use(arithmetic)
            if arithmetic.alike:
                prepared[arithmetic.alike] = other
        return other

    @cached_property
    def _prepared(self) -> dict[tuple[str, str] | None, Self]:
        """By what their arithmetics have alike. The oracles of a file share it."""
        return {}

    @abstractmethod
    def use(self, arithmetic: Arithmetic) -> None:
        """Compute in this arithmetic from now on."""

    @abstractmethod
    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """One call: every output by name. A float input is rounded to the arithmetic's dtype.

        Raises ValueError for an input whose name, shape or type is not the file's, and ModelFileError where the file
        cannot be computed.
        """

    def weights(self) -> Iterable[tuple[str, np.ndarray]]:
        """The numbers of the file with their names, as far as a user could find them there."""
        return ()

    def weights_not_finite(self) -> str:
        """The weights that have NaN or infinities, in words; empty where none has."""
        found = []
        for name, array in self.weights():
            # NumPy has no kind of its own for bfloat16.
            finite = array.dtype.kind not in "fV" or np.isfinite(array.astype(np.float64))
            if wrong := array.size - np.count_nonzero(np.broadcast_to(finite, array.shape)):
                found.append(f"{safe_text(name, 80)} ({wrong:,} of {array.size:,} numbers)")
        others = f" and {len(found) - NAMED} others" if len(found) > NAMED else ""
        return ", ".join(found[:NAMED]) + others


@dataclass(frozen=True)
class Format:
    """A format. Its functions raise ModelFileError with a sentence, and MissingExtraError without their package."""

    name: str
    suffixes: tuple[str, ...]
    """The ends of the names of such files."""
    describe: Callable[[Path], FileDescription]
    """What is in a file, within `limits`: nothing large is allocated before it is known to be there."""
    oracle: Callable[[Path], Oracle]
    """The file in float64."""
