"""The error of a model file that is not used."""

from __future__ import annotations


class ModelFileError(Exception):
    """A model file cannot be read, or not be computed. The message says what is wrong, and what is expected instead."""
