"""Where a night keeps what it found, and the names of its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE, DATA, ISSUES, SITE = "night.md", "night.json", "issues", "site"
"""In the folder of a night: its page, its data, the texts of the issues, and the site."""


@dataclass(frozen=True)
class NightFolders:
    """Where what is collected goes."""

    history: Path
    alerts: Path
    state: Path
    reports: Path
    """Of the night."""
