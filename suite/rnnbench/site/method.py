"""The method: the documents of `docs/` as pages. HTML in them is shown as text; links lead to pages of the site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rnnbench.optional import require
from rnnbench.site.anatomy import PARTS
from rnnbench.site.content import Content
from rnnbench.site.page import EXTRA, PURPOSE, Folder

DOCUMENTS: Mapping[str, str] = {
    "measurement": "How latency, build time and memory are measured; warm-up, sampling, scenarios, the floor",
    "verdicts": "When two versions differ: verdicts, how often they are right, and what they do not see",
    "fidelity": "How calls of this suite compare with each runtime's own timing tool",
    "conformance": "What is checked before anything is timed, and which failures are expected",
    "tolerance": "The reference, and by how much a result may differ from it",
    "history": "How nights become series, and when a change becomes an alert",
    "night": "How new versions are compared every night, and how often a machine raises a false alarm",
    "reports": "How rankings, pictures and tables are made",
    "results": "Every file, field and column",
    "site": "What each page of this site shows, and its size",
}
"""Documents that say how figures are made, with what they answer."""
FIGURES: tuple[tuple[str, str, str], ...] = (
    ("bound and public latency, ± interval", "measurement", ""),
    ("FASTER, SLOWER, SAME, UNDECIDED", "verdicts", ""),
    ("latency floor, dispatch floor, state copy", "measurement", ""),
    ("build time, artifact size, memory", "measurement", ""),
    ("✓, ✗, expected failures", "conformance", ""),
    ("multiples of rounding", "tolerance", ""),
    ("changes, events, environment", "history", ""),
    ("false alarms", "night", "false-alarms-of-a-machine"),
    ("places in rankings, strategy pairs", "reports", ""),
)
CHECKOUT = Path(__file__).parents[3] / "docs"
PACKAGED = Path(__file__).parents[1] / "docs"
_SLUG = re.compile(r"[^\w\- ]")


def write_method(content: Content, folder: Folder) -> None:
    """`method.html`, and a page for each document that is there."""
    texts = {name: text for name in DOCUMENTS if (text := _read(name)) is not None}
    for name, text in texts.items():
        folder.page(
            f"method-{name}.html", "document.html", content=content, title=_title(text), html=html_of(text, set(texts))
        )
    folder.page(
        "method.html",
        "method.html",
        content=content,
        documents={name: means for name, means in DOCUMENTS.items() if name in texts},
        parts=PARTS,
        figures=[figure for figure in FIGURES if figure[1] in texts],
    )


def _read(name: str) -> str | None:
    for root in (CHECKOUT, PACKAGED):
        try:
            return (root / f"{name}.md").read_text(encoding="utf-8")
        except OSError:
            continue
    return None


def _title(text: str) -> str:
    return next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), "Method")


def html_of(text: str, documents: set[str]) -> Any:
    """The document as HTML that is safe in a template."""
    markdown_it = require("markdown_it", EXTRA, PURPOSE)
    markupsafe = require("markupsafe", EXTRA, PURPOSE)
    parser = markdown_it.MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    anchors: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = slug_of(tokens[index + 1].content)
            number = anchors.setdefault(slug, 0)
            anchors[slug] += 1
            token.attrSet("id", f"{slug}-{number}" if number else slug)
        if token.type == "th_open" and not tokens[index + 1].content:  # a cell without text is the heading of nothing
            token.tag = tokens[index + 2].tag = "td"
        if token.type == "inline":
            token.children = _linked(token.children, documents)
    return markupsafe.Markup(parser.renderer.render(tokens, parser.options, {}))


def _linked(tokens: list[Any], documents: set[str]) -> list[Any]:
    """Links to other documents lead to their pages. Others, and pictures, which the site does not have, are text."""
    kept: list[Any] = []
    targets: list[str] = []
    for token in tokens:
        if token.type == "link_open":
            targets.append(_target(str(token.attrGet("href")), documents))
            token.attrSet("href", targets[-1])
        is_link = token.type in ("link_open", "link_close")
        if token.type == "image":
            token.type, token.tag, token.content = "text", "", f"[{token.content}]"
        if not is_link or targets[-1]:
            kept.append(token)
        if token.type == "link_close":
            targets.pop()
    return kept


def _target(address: str, documents: set[str]) -> str:
    if address.startswith("#") or re.match(r"https://", address):
        return address
    page, _, anchor = address.partition("#")
    name = page.removesuffix(".md").removeprefix("docs/")
    return f"method-{name}.html{'#' + anchor if anchor else ''}" if name in documents and page.endswith(".md") else ""


def slug_of(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return _SLUG.sub("", title.lower().replace("`", "")).replace(" ", "-")
