"""Rendering: templates with autoescape, data files that are safe as scripts, and writing both below one folder.

Text of records is hostile. In a template every text is made visible (`results.visible`) and escaped. In a data file it
is JSON in ASCII without `<`, and the scripts of the site set it as `textContent` only.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rnnbench.disk import read_cached, read_plain, write_bytes
from rnnbench.history import PUBLISH
from rnnbench.optional import require
from rnnbench.reports import change_with_interval, device_facts, multiple, nbytes, ratio, seconds
from rnnbench.results import visible
from rnnbench.spelling import count

PURPOSE = "the site"
EXTRA = "site"
DIGEST_DIGITS = 12
"""Digits of the digest of a data file's content, in its name."""
_ISSUE = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
_ADDRESS = re.compile(r"https://[\w.-]+/[\w./#%?=&+~-]*")
_FIGURE = re.compile(r"<pre\b.*?</pre>|<[^>]*>|(?<=\d) (?=%|(?:[nµm]?s|[KMG]iB|[kMG]?B)\b)", re.DOTALL)
"""The space between a number and its unit; and preformatted text and tags, which stay as they are."""
_NUMBERS = frozenset((int, type(None)))
"""Types of which most lists of data files consist. They are JSON as they are."""


@dataclass
class Folder:
    """The folder of the site. It counts what is written, and never leaves itself."""

    root: Path
    written: set[str] = field(default_factory=set)

    def page(self, path: str, template: str, **content: Any) -> None:
        """A page from a template. Paths are names that this package makes."""
        depth = path.count("/")
        rendered = _templates().get_template(template).render(root="../" * depth, path=path, **content)
        self.write(path, with_whole_figures(rendered).encode("utf-8", "backslashreplace"))

    def data(self, kind: str, value: object) -> str:
        """A data file `data/<name>.js`, which pages load on demand: from `file://` nothing else can be loaded.

        Returns its name, which has a digest of its content: a page, which a browser may have kept, never gets the data
        of another state of the site.
        """
        content = script_json(value)
        name = f"{kind}-{hashlib.sha256(content.encode()).hexdigest()[:DIGEST_DIGITS]}"
        self.write(f"data/{name}.js", f'rnnbench.put("{name}",{content});\n'.encode())
        return name

    def write(self, path: str, content: bytes) -> None:
        self.written.add(path)
        target = self.root / path
        if read_cached(target, read_plain) != content:
            write_bytes(target, content)


@cache
def _templates() -> Any:
    """Those of all sites of a process: to compile them takes a third of a small site."""
    jinja2 = require("jinja2", EXTRA, PURPOSE)
    markupsafe = require("markupsafe", EXTRA, PURPOSE)
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "seconds": seconds,
        "nbytes": nbytes,
        "ratio": ratio,
        "multiple": multiple,
        "issue": issue_address,
        "change": change_with_interval,
        "day": lambda night: night[:10],
        # As the data files have a name. Marked as safe: a template would cut the end of a long one again.
        "urlencode": lambda text: markupsafe.Markup(quote(visible(text), safe="")),
    }
    environment.globals |= {"count": count, "device_facts": device_facts, "nights_of_a_level": PUBLISH.nights}
    return environment


def with_whole_figures(html: str) -> str:
    """The page with a no-break space between each number and its unit: a narrow screen does not part them."""
    return _FIGURE.sub(lambda found: "\N{NO-BREAK SPACE}" if found[0] == " " else found[0], html)


def as_line(value: object) -> bytes:
    """A line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def script_json(value: object) -> str:
    """JSON that is safe in a script: ASCII, without `<`, and without numbers that JSON does not have."""
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def issue_address(upstream: str) -> str:
    """The address of an upstream issue, given as `owner/project#7` or as an https address; empty for anything else."""
    text = upstream.strip()
    if short := _ISSUE.fullmatch(text):
        return f"https://github.com/{short[1]}/issues/{short[2]}"
    return text if _ADDRESS.fullmatch(text) else ""


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is int or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is list or kind is tuple:
        return value if _NUMBERS.issuperset(map(type, value)) else [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return visible(value) if isinstance(value, str) else value


def _shown(value: object) -> object:
    """What a template prints. Markup of the templates themselves stays as it is. A workload, too, has texts in it."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _template(name: str) -> str:
    return (files("rnnbench.site") / "templates" / name).read_text(encoding="utf-8")
