"""A site of nights that no machine measured, and a browser that opens it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import made_history
import pytest
from made_site import NIGHTS, Made, night

from rnnbench.results import read_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-default-apps", "--no-first-run"),
]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    pytest.importorskip("duckdb")
    from rnnbench.site import write_site

    folder = tmp_path_factory.mktemp("nights")
    machine = {**made_history.MACHINE, "synthetic": True}
    history = made_history.make(folder, NIGHTS, night, lambda number: machine)
    runs = tuple(read_run(folder / f"night{number:03d}") for number in range(NIGHTS))
    write_site([runs[-1]], history, folder / "site")
    return Made(folder / "site", runs)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium of the machine. It ends with its module: other tests count the children of their process."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; on Debian: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
