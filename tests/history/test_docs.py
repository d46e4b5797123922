"""The query that `docs/history.md` shows runs, and its table of criteria is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

from rnnbench.history import PUBLISH, SCREEN, History

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")


def test_the_query_of_the_page_runs(tmp_path: Path) -> None:
    History(tmp_path).add(ROOT / "results" / "reference")
    _, _, rest = PAGE.partition("<!-- test: the query of docs/history.md -->\n\n")
    query, _, _ = rest.partition("\n\n")
    answer = History(tmp_path).sql(query)
    assert answer.columns == ("trial", "runs", "best", "newest")
    assert len(answer.rows) == 10


@pytest.mark.parametrize(("name", "criteria"), [("screen", SCREEN), ("publish", PUBLISH)])
def test_the_criteria_of_the_page_are_those_of_the_code(name: str, criteria: object) -> None:
    (row,) = re.findall(rf"^\| {name} \| (\S+) \| (\S+) % \| 10(\S+) \| (\d+) \|", PAGE, re.MULTILINE)
    power = {"⁻³": 1e-3, "⁻⁴": 1e-4}[row[2]]
    shown = (float(row[0]), float(row[1]) / 100, power, int(row[3]))
    assert shown == (criteria.penalty, criteria.least, criteria.p, criteria.nights)
