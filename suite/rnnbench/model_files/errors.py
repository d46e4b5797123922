"""The error of a model file that is not used."""

from __future__ import annotations

from rnnbench.outside_text import one_line


class ModelFileError(Exception):
    """A model file cannot be read, or not be computed. The message says what is wrong, and what is expected instead.

    It is one line of safe text, whatever names of the file are in it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))
