"""The error of a model file that is not used, and of one whose computation fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rnnbench.outside_text import describe_error, one_line

_LONGEST = 300
"""Characters of a framework's error that are told."""


class ModelFileError(Exception):
    """A model file cannot be read, or not be computed. The message says what is wrong, and what is expected instead.

    It is one line of safe text, whatever names of the file are in it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


@contextmanager
def computing(name: str) -> Iterator[None]:
    """For the computation of a file of this name. What a framework raises becomes a ModelFileError that names it."""
    try:
        yield
    except (MemoryError, ModelFileError):
        raise
    except Exception as error:  # NumPy, torch and TensorFlow have no base class of their errors
        raise ModelFileError(f"{name}: it cannot be computed: {describe_error(error)[:_LONGEST]}") from error
