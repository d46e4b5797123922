"""The Chromium of this machine, headless: the site's tests and its benchmark open pages in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from waiting import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-default-apps", "--no-first-run"),
]


@contextmanager
def opened_chromium() -> Iterator[Any]:
    """The browser, until the block ends. It is a program of the system, which pip cannot install: where there is none,
    the test is skipped, and says how to get it. Nothing else that a site promises can be looked at without a browser.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on this machine; on Debian: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="drives Chromium; pip install 'rnnbench[test]'")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=ARGUMENTS, timeout=1000 * PATIENCE_S)
        try:
            yield browser
        finally:
            browser.close()
