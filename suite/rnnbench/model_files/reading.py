"""`describe` and `oracle_of`: a model file of any format."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rnnbench.model_files import formats
from rnnbench.model_files.description import FileDescription
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_bytes import require_whole
from rnnbench.model_files.formats import Format, Oracle
from rnnbench.outside_text import describe_error

T = TypeVar("T")


def describe(path: Path) -> FileDescription:
    """What is in the file. Raises ModelFileError with a sentence, and MissingExtraError without the package it needs.

    Call it in a process of its own with limits of memory and time (`worker.describe_file`).
    """
    return _in_a_sentence(path, lambda: _format_of(path).describe(path))


def oracle_of(path: Path) -> Oracle:
    """The file in float64. Raises ModelFileError for a file that is not read or not computed rightly."""
    return _in_a_sentence(path, lambda: _format_of(path).oracle(path))


def _format_of(path: Path) -> Format:
    found = formats.format_of(path)
    require_whole(path)
    return found


def _in_a_sentence(path: Path, read: Callable[[], T]) -> T:
    """What `read` gives. Whatever it raises becomes one sentence about the file, but for a lack of memory or a package.

    A file may say of its operators what no exporter writes, so there is always one more exception. A system tells of a
    lack of memory by an OSError, too (ENOMEM, errno(3)), as where a folder is listed.
    """
    try:
        return read()
    except ModelFileError as error:
        message = str(error)
        raise error if message.startswith(f"{path}: ") else ModelFileError(f"{path}: {message}") from error
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise MemoryError(describe_error(error)) from error
        if isinstance(error, PermissionError):
            where = error.filename or path
            raise ModelFileError(f"{path}: {where} cannot be read: {error.strerror}; see who may read it") from error
        raise ModelFileError(f"{path}: it is damaged, or is not made as expected: {describe_error(error)}") from error
