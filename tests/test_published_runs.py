"""The table of `results/README.md` has every shipped case, and says of published ones what their records say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"^\| (`[^|]*`) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def lines() -> list[tuple[str, ...]]:
    section = (ROOT / "results" / "README.md").read_text().split("## Which cases are published")[1]
    return [tuple(cell.strip() for cell in line) for line in LINE.findall(section)]


PUBLISHED = [pytest.param(line, id=line[0].strip("`")) for line in lines() if line[1] != "—"]


def test_the_table_has_every_shipped_case_once() -> None:
    shipped = [path.relative_to(ROOT / "cases") for path in (ROOT / "cases").rglob("*.yaml")]
    cases = {"conformance/*" if path.parts[0] == "conformance" else str(path.with_suffix("")) for path in shipped}
    named = [name for line in lines() for name in re.findall(r"`([^`]+)`", line[0])]
    assert sorted(named) == sorted(cases - {"expectations"})


def test_the_table_has_every_published_run() -> None:
    runs = sorted(str(path.parent.relative_to(ROOT / "results")) for path in (ROOT / "results").glob("**/run.json"))
    committed = [name for name in runs if name.partition("/")[0] in {*_folders(), "questions"}]
    assert sorted(line[1].strip("`") for line in lines() if line[1] != "—") == committed


@pytest.mark.parametrize("line", PUBLISHED)
def test_machine_and_date_are_those_of_the_run(line: tuple[str, ...]) -> None:
    case, folder, report, machine, date = line
    run = json.loads((ROOT / "results" / folder.strip("`") / "run.json").read_text())
    assert run["cases"] == [case.strip("`").rpartition("/")[2]]
    assert machine.split()[-1] in run["machine"]["cpu"]
    assert run["machine"]["cores"] == 2
    assert run["started"].startswith(date)
    (link,) = re.findall(r"\]\(\.\./(.*?)\)", report)
    assert (ROOT / link).is_file()


def _folders() -> set[str]:
    """Of runs in `results`, those that Git does not ignore: another run may lie there, too."""
    ignored = (ROOT / ".gitignore").read_text()
    return set(re.findall(r"^!/results/(\w+)/$", ignored, re.MULTILINE))
