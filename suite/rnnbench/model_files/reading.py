"""`describe` and `oracle_of`: a model file of any format."""

from __future__ import annotations

from pathlib import Path

from rnnbench.model_files import formats
from rnnbench.model_files.description import FileDescription
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats import Oracle


def describe(path: Path) -> FileDescription:
    """What is in the file. Raises ModelFileError with a sentence, and MissingExtraError without the package it needs.

    Call it in a process of its own with limits of memory and time (`worker.describe_file`).
    """
    try:
        return formats.format_of(path).describe(path)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def oracle_of(path: Path) -> Oracle:
    """The file in float64. Raises ModelFileError for a file that is not read or not computed rightly."""
    try:
        return formats.format_of(path).oracle(path)
    except ModelFileError as error:
        told = str(error)
        raise error if told.startswith(f"{path}: ") else ModelFileError(f"{path}: {told}") from error
