"""A site of nights that no machine measured, with a planted change and hostile names, and a browser that opens it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_records as fake
import made_history
import pytest

from rnnbench.results import Record, Run, read_run

NIGHTS, STEP = 16, 7
HOSTILE = '<img src=x onerror="window.hit=1">\'"</script><script>window.hit=2</script>\u2028\u202eetirw'
HOSTILE_SHOWN = '<img src=x onerror="window.hit=1">\'"</script><script>window.hit=2</script> \\u202eetirw'
"""What a page shows of it: a line separator is a space, and a sign that turns text around is written out."""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-default-apps", "--no-first-run"),
]


@dataclass(frozen=True)
class Made:
    """The site with what it was made from."""

    root: Path
    runs: tuple[Run, ...]
    """Of each night."""


def night(number: int, record: Record) -> Record:
    """From night STEP on, one backend has another version and is slower; one trial has hostile texts and fails."""
    interval = {
        path: one.model_copy(update={"interval": (one.median * 0.99, one.median * 1.01)})
        for path, one in record.timing.latency.items()
    }
    record = fake.with_latencies(record, **interval)
    if record.backend == "fakemlir" and number >= STEP:
        record = made_history.of_version(made_history.slower(record, 1.1), "2.0.0")
    if record.backend == "fakelib" and record.params.chunk == 64:
        failed = fake.record("fakelib", "ops", chunk=64, outcome="build-failed") if number >= STEP else record
        support = record.support.model_copy(update={"reason": HOSTILE, "upstream": "javascript:alert(1)"})
        reason = HOSTILE if number >= STEP else ""
        names = {"trial": f"{HOSTILE}/{record.trial}", "case": HOSTILE, "route": HOSTILE, "version": {HOSTILE: HOSTILE}}
        record = failed.model_copy(update={**names, "reason": reason, "support": support})
    return record


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


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium of the machine."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; on Debian: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
