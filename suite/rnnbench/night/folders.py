"""The folders of a night's results, and the names of their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE, DATA, ISSUES, SITE = "night.md", "night.json", "issues", "site"
"""The files and folders in a night's folder: its page, its data, the texts of the issues, and the site."""


@dataclass(frozen=True)
class NightFolders:
    """The files and folders that a night writes when it is collected."""

    history: Path
    alerts: Path
    state: Path
    reports: Path
    """The folder with PAGE, DATA, ISSUES and SITE."""
