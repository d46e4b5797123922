"""The error of a case, and the kind of YAML file that raises it."""

from __future__ import annotations

from rnnbench.yaml_files import FileError, FileKind, Place, Problem

__all__ = ["CASE", "CaseError", "Place", "Problem"]


class CaseError(FileError):
    """A case, an override or a selection cannot be used. Its text has a line for each problem, in the file's order."""


CASE = FileKind("a case", CaseError)
"""Case files, and YAML that is read as a part of one."""
