"""Links between the project's own pages lead to a file that is there, and to a heading that it has."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")


def pages() -> list[Path]:
    """Those of the repository. Reports that Git ignores are of runs of one's own."""
    published = re.findall(r"^!/(reports/[\w*-]+)/$", (ROOT / ".gitignore").read_text(), re.MULTILINE)
    globs = ("*.md", "docs/**/*.md", "suite/**/*.md", "results/README.md", *(f"{name}/**/*.md" for name in published))
    return sorted(path for pattern in globs for path in ROOT.glob(pattern))


@cache
def headings(page: Path) -> frozenset[str]:
    """The names under which a Markdown page's headings are reached: GitHub counts those that are alike."""
    names: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        names.append(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return frozenset(f"{name}-{count}" if (count := names[:i].count(name)) else name for i, name in enumerate(names))


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()])
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for path, heading in LINK.findall(CODE.sub("", page.read_text())):
        target = page.parent / path if path else page
        if not target.exists() or (heading and target.suffix == ".md" and heading not in headings(target)):
            dead.append(f"{path}#{heading}")
    assert not dead


def test_the_list_of_pages_has_every_page_of_docs() -> None:
    listed = {path for path, _ in LINK.findall((ROOT / "docs" / "README.md").read_text())}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= listed
