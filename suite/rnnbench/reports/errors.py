"""The error of reports."""

from __future__ import annotations

from pathlib import Path


class ReportError(ValueError):
    """A report cannot be written. The message names the folder or file, and says what to do."""


def unwritable_folder(folder: Path, error: OSError) -> ReportError:
    return ReportError(
        f"cannot write the report to {folder}: {error.strerror or error}; "
        f"make it writable, or choose another folder with --reports"
    )
