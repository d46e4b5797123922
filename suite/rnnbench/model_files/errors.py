"""The error of a model file that is not used, and of one whose computation fails."""

from __future__ import annotations

import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from rnnbench.disk import is_disk_error
from rnnbench.outside_text import describe_error, one_line, safe_text

_LONGEST = 300
"""Characters of a framework's error that are told."""
_NOT_UNPACKED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
_BZIP2 = "Invalid data stream"
"""All that bz2 says: its OSError has no number."""
_HDF5 = re.compile(r"(Unable to|Can't) (synchronously )?(open|read|check|get|create|iterate)|Link iteration failed")
"""Begins what h5py says, whatever it raises."""
_CUT_HDF5 = re.compile(r"truncated file: eof = (\d+),.* stored_eof = (\d+)")


class ModelFileError(Exception):
    """A model file cannot be read, or not be computed. The message says what is wrong, and what is expected instead.

    It is one line of safe text, whatever names of the file are in it. `key` is the path of what is wrong in a case's
    section `model`; empty where it is the file itself. With `is_name`, its last part is wrong, and not its value.
    """

    def __init__(self, message: str, *key: str | int, is_name: bool = False) -> None:
        super().__init__(one_line(message))
        self.key = key
        self.is_name = is_name


@contextmanager
def parsing(damaged: str) -> Iterator[None]:
    """For bytes that may be wrong. Whatever a library raises of them becomes a ModelFileError: `{damaged}: …`.

    An error of the disk, where bytes are copied to, goes through.
    """
    try:
        yield
    except (ImportError, MemoryError, ModelFileError):
        raise
    except Exception as error:  # zipfile, json, h5py, protobuf and the readers of a format have no base class
        if is_disk_error(error):
            raise
        raise ModelFileError(f"{damaged}: {_damage(error)}") from error


def _damage(error: Exception) -> str:
    """What is wrong with the bytes: libraries speak of their own functions, and do not say that a file is damaged."""
    message = str(error)
    if cut := _CUT_HDF5.search(message):
        return f"it has {int(cut[1]):,} of its {int(cut[2]):,} bytes"
    if _HDF5.match(message.lstrip("'\"")):
        return "HDF5 cannot read a part of it"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON at line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "a text in it is not UTF-8"
    if isinstance(error, RecursionError):
        return "its parts are inside each other too often"
    if isinstance(error, _NOT_UNPACKED) or message == _BZIP2:
        return "it does not unpack to what was packed"
    if isinstance(error, struct.error | IndexError) or message.startswith("bad number"):
        return "a place that it names lies outside of it"
    if isinstance(error, TypeError | AttributeError):
        return "a part of it is of another kind than expected there"
    if isinstance(error, KeyError):
        return f"it has no {safe_text(message, 60)}"
    if type(error).__name__ == "DecodeError":
        return "its bytes are no protobuf message"
    return safe_text(describe_error(error), _LONGEST)


@contextmanager
def computing(name: str) -> Iterator[None]:
    """For the computation of a file of this name. What a framework raises becomes a ModelFileError that names it."""
    try:
        yield
    except (MemoryError, ModelFileError):
        raise
    except Exception as error:  # NumPy, torch and TensorFlow have no base class of their errors
        raise ModelFileError(f"{name}: it cannot be computed: {safe_text(describe_error(error), _LONGEST)}") from error
