"""The page of a backfill: what changed between which releases, in sentences, and the tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnbench.disk import write_text
from rnnbench.reports.errors import unwritable_folder
from rnnbench.reports.escape import Markdown, paragraph
from rnnbench.reports.tables import Table, markdown_table

PAGE = "releases.md"


def write_release_page(title: str, sentences: Sequence[str], tables: Sequence[Table], folder: Path) -> Path:
    """Write the page into `folder` and return it. Raises ReportError."""
    parts: list[str] = [Markdown("# {}").format(title)]
    parts.append(Markdown("\n").join(Markdown("- {}").format(sentence.strip()) for sentence in sentences))
    for content in tables:
        parts += [Markdown("## {}").format(content.title), markdown_table(content)]
        if content.note:
            parts.append(content.note)
    page = folder / PAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(page, "\n\n".join(map(paragraph, parts)) + "\n")
    except OSError as error:
        raise unwritable_folder(folder, error) from error
    return page
