"""Takes the picture of the site in the README: what a browser shows of the first page of the committed site.

    PYTHONPATH=tests/fake python tests/site/picture.py     # `make site` does it, too

The file says of which page it is, so that a test sees that the page is another one by now.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

from browser import opened_chromium

ROOT = Path(__file__).parents[2]
SITE = ROOT / "reports" / "site"
PICTURE = ROOT / "docs" / "site.png"
SIZE = {"width": 1280, "height": 1280}
LABEL = "Page"
"""The name of the text in the file that says of which page it is."""


def page_digest() -> str:
    """Of the page, and of how it looks. The page names its data files by digests of their own."""
    content = [(SITE / name).read_bytes() for name in ("index.html", "static/site.css")]
    return hashlib.sha256(b"".join(content)).hexdigest()


def take() -> None:
    from PIL import Image, PngImagePlugin

    with opened_chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        page.goto((SITE / "index.html").as_uri())
        taken = page.screenshot()
    said = PngImagePlugin.PngInfo()
    said.add_text(LABEL, page_digest())
    Image.open(io.BytesIO(taken)).save(PICTURE, pnginfo=said, optimize=True)


if __name__ == "__main__":
    take()
