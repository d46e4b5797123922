"""A site of nights that no machine measured, and a browser that opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import fake_records as fake
import made_history
import pytest
from browser import opened_chromium
from made_site import NIGHTS, Made, night, samples

from rnnbench.results import read_run, save_samples
from rnnbench.site import method
from rnnbench.site.content import Content, read_content

OPENED = ExitStack()
"""Ends the browser, where one was begun."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The browser ends with the last test of this folder: others count the children of their process."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        OPENED.close()
        _browser.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def documents_once() -> Iterator[None]:
    """Every site has the same documents, whose pages take half of the time of a small site."""
    html_of = cache(method.html_of)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method, "html_of", lambda text, documents: html_of(text, frozenset(documents)))
        yield


@pytest.fixture(scope="session")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """Of a run of 31 January."""
    return read_content([read_run(fake.write_run(tmp_path_factory.mktemp("run") / "run", [fake.record()]))], None)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    pytest.importorskip("duckdb")
    from rnnbench.site import write_site

    folder = tmp_path_factory.mktemp("nights")
    machine = {**made_history.MACHINE, "synthetic": True}
    history = made_history.make(folder, NIGHTS, night, lambda number: machine)
    last = folder / f"night{NIGHTS - 1:03d}"
    for record in read_run(last).records:
        save_samples(last, record.trial[-8:], "bound", samples())
    history.add_checks(last)
    runs = tuple(read_run(folder / f"night{number:03d}") for number in range(NIGHTS))
    write_site([runs[-1]], history, folder / "site")
    return Made(folder / "site", runs)


@pytest.fixture(scope="module")
def chromium() -> Any:
    """A headless Chromium of the machine, the same for all modules: to begin one takes seconds of the processor."""
    return _browser()


@cache
def _browser() -> Any:
    return OPENED.enter_context(opened_chromium())
