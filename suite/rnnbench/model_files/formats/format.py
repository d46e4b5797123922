"""What a format of model files is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from rnnbench.model_files.description import FileDescription
from rnnbench.rnn import Arithmetic


class Oracle(Protocol):
    """A model file in an arithmetic. Read and run it in a process with limits of memory and time."""

    def in_arithmetic(self, arithmetic: Arithmetic) -> Oracle:
        """The same file in another arithmetic. The file is not read again."""
        ...

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """One call: every output by name. A float input is rounded to the arithmetic's dtype.

        Raises ValueError for an input whose name, shape or type is not the file's, and ModelFileError where the file
        cannot be computed.
        """
        ...


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
