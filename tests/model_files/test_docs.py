"""docs/model_files.md: its table of formats is what formats and adapters declare."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

from rnnbench.model_files import FORMATS

PAGE = Path(__file__).parents[2] / "docs" / "model_files.md"
ROW = re.compile(r"^\| (\w+) \| ((?:`\.\w+`(?:, )?)+) \|[^|]*\| (.+) \|$", re.MULTILINE)


def test_the_table_has_every_format_with_the_routes_that_read_it():
    adapters = [entry.load()() for entry in entry_points(group="rnnbench.backends") if "rnnbench." in entry.value]
    reads = [(one.name, route, formats) for one in adapters for route, formats in one.probe().reads.items()]
    declared = {
        (each.name, *each.suffixes): {f"{backend}:{route}" for backend, route, formats in reads if each.name in formats}
        for each in FORMATS.values()
    }
    written = {
        (name, *re.findall(r"`(\.\w+)`", suffixes)): set(re.findall(r"`(\w+:[\w-]+)`", routes))
        for name, suffixes, routes in ROW.findall(PAGE.read_text())
    }
    assert written == declared
