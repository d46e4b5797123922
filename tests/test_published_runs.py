"""The table of `results/README.md` has every shipped case, and says of published ones what their records say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rnnbench.results import read_run

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"^\| (`[^|]*`) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def lines() -> list[tuple[str, ...]]:
    section = (ROOT / "results" / "README.md").read_text().split("## Which cases are published")[1]
    return [tuple(cell.strip() for cell in line) for line in LINE.findall(section)]


PUBLISHED = [pytest.param(line, id=line[0].strip("`")) for line in lines() if line[1] != "—"]


def test_the_table_has_every_shipped_case() -> None:
    shipped = [path.relative_to(ROOT / "cases") for path in (ROOT / "cases").rglob("*.yaml")]
    cases = {"conformance/*" if path.parts[0] == "conformance" else str(path.with_suffix("")) for path in shipped}
    named = {name for line in lines() for name in re.findall(r"`([^`]+)`", line[0])}
    assert sorted(named) == sorted(cases - {"expectations"})


def test_the_table_has_every_published_run() -> None:
    runs = sorted(str(path.parent.relative_to(ROOT / "results")) for path in (ROOT / "results").glob("**/run.json"))
    committed = [name for name in runs if name.partition("/")[0] in {*_folders(), "questions"}]
    assert sorted(folder for line in lines() for folder in _named(line[1])) == committed


L2 = {"512 KiB": 512 << 10, "1 MiB": 1 << 20}


@pytest.mark.parametrize("line", PUBLISHED)
def test_machine_and_date_are_those_of_the_runs(line: tuple[str, ...]) -> None:
    case, folders, report, machine, date = line
    reports = re.findall(r"\]\(\.\./(reports/.*?)\)", report)
    assert all((ROOT / link).is_file() for link in reports)
    assert len(reports) == len(_named(folders))
    processor, _, cache = machine.partition(", L2 of ")
    for folder in _named(folders):
        run = read_run(ROOT / "results" / folder)
        assert not run.info.directory, "a path of the machine on which it ran"
        assert run.info.cases == (case.strip("`").rpartition("/")[2],)
        assert run.info.started.startswith(date)
        devices = {record.device.name for record in run.records if record.device and record.device.name}
        on_gpu = {name for name in devices if "NVIDIA" in name}
        ran_on = sorted(devices) if on_gpu else [run.info.machine["cpu"]]
        named = sorted(processor.split(" and "))
        assert len(ran_on) == len(named)
        assert all(name.split()[-1] in device for name, device in zip(named, ran_on, strict=True))
        assert not cache or run.info.machine["caches"]["L2"] == L2[cache]
        assert on_gpu or run.info.machine["cores"] == 2


def _named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _folders() -> set[str]:
    """Of runs in `results`, those that Git does not ignore: another run may lie there, too."""
    ignored = (ROOT / ".gitignore").read_text()
    return set(re.findall(r"^!/results/(\w+)/$", ignored, re.MULTILINE))
