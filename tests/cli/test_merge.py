"""Three machines' shares of one plan, merged: made-up ones, and those that were run as on three machines.

Of the latter, one program is the fake backend's, the other is NumPy's, and real.
"""

from __future__ import annotations

import csv
import json
import shutil
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from fake_shards import make_shard
from harness_command import run_command

from rnnbench.results import read_run, write_info

CASE = """\
schema: 1
name: sizes
model: {cell: lstm, input: 3, hidden: [4, 6, 8]}
workload: {steps: 4, chunk: 2}
strategy: {time: looped, state: stitched}
measure: {budget: 30ms, processes: 1}
"""
OPTIONS = ("sizes.yaml", "--backend=fake:honest", "--anchors=none")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """A folder with the runs of three shards and of an empty fourth, and what the command printed of each."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "sizes.yaml").write_text(CASE)
    done = [run_command(folder, "run", *OPTIONS, "--shard", f"{number}/4") for number in (1, 2, 3, 4)]
    return folder, done


@pytest.fixture
def rnnbench(tmp_path):
    """Runs the command in a folder that has the case."""
    (tmp_path / "sizes.yaml").write_text(CASE)
    return partial(run_command, tmp_path)


@pytest.fixture
def ran(shards, tmp_path):
    """Copies of the shards that were run lie there, too: two trials in each, and the two anchors of the others."""
    shutil.copytree(shards[0] / "results", tmp_path / "results")


@pytest.fixture
def made(tmp_path):
    """Shards that no machine made lie there, too: three trials in each, and the two anchors of the others."""
    for number in (1, 2, 3, 4):
        make_shard(tmp_path / "results", number)


def runs(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob("results/*-of-4"))


def test_what_may_take_long_is_told(rnnbench, made, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("rnnbench.pipeline.told_if_long", lambda doing: told.append(doing) or nullcontext())
    rnnbench("merge", *runs(tmp_path), "-o", "whole")
    assert told == ["reading 4 runs", "copying the files of 3 shards"]


@pytest.mark.proof
def test_the_merged_run_has_the_trials_of_the_whole_plan(rnnbench, ran, tmp_path):
    told = [rnnbench("merge", *runs(tmp_path), "-o", "whole").stdout.splitlines()[-1] for _ in range(2)]
    assert told == ["merged  whole", "already merged  whole"]
    whole = rnnbench("list", *OPTIONS, "--shard", "1/1").stdout.split()
    assert len(whole) == 6
    rnnbench("export", "whole", "-o", "rows.csv")
    rows = list(csv.DictReader((tmp_path / "rows.csv").open()))
    assert sorted({row["trial"] for row in rows}) == sorted(whole)
    assert len(rows) == 6 + 3 * 2, "each shard has the two anchors of the others"
    assert {row["outcome"] for row in rows} == {"ok"}
    assert all(float(row["bound_median_s"]) > 0 for row in rows)


@pytest.mark.proof
def test_list_shows_what_a_shard_ran(rnnbench, ran, tmp_path):
    for name in runs(tmp_path)[:3]:
        number = json.loads((tmp_path / name / "run.json").read_text())["shard"]["number"]
        listed = rnnbench("list", *OPTIONS, "--shard", f"{number}/4")
        ran = [json.loads(line)["trial"] for line in (tmp_path / name / "records.jsonl").open()]
        assert sorted(listed.stdout.split()) == sorted(ran)
        assert listed.stderr.startswith(f"shard {number}/4: 2 of 6 trials, and 2 anchors of other shards")


@pytest.mark.proof
def test_an_empty_shard_says_so_and_is_no_error(shards):
    _, done = shards
    assert "shard 4/4 is empty" in done[3].stdout


def test_report_compare_history_and_site_read_the_merged_run(rnnbench, made, tmp_path):
    pytest.importorskip("duckdb")
    rnnbench("merge", *runs(tmp_path), "-o", "whole")
    page = (tmp_path / rnnbench("report", "whole").stdout.strip()).read_text()
    assert "9 trials: 9 ok" in page
    assert "fakemlir:linalg" in page
    another = shutil.copytree(tmp_path / "whole", tmp_path / "another")
    write_info(another, read_run(another).info.model_copy(update={"command": ("another",)}))
    assert "18 latency verdicts" in rnnbench("compare", "whole", "another").stdout
    added = rnnbench("history", "add", "whole").stdout.splitlines()
    assert [line.endswith("added (5 trials)") for line in added] == [True] * 3
    assert rnnbench("history", "add", runs(tmp_path)[0]).stdout.strip().endswith("already there (5 trials)")
    rnnbench("site", "whole")
    assert (tmp_path / "reports/site/index.html").is_file()


def test_a_missing_shard_is_named_and_nothing_is_written_unless_that_is_asked_for(rnnbench, made, tmp_path):
    first, _, third, _ = runs(tmp_path)
    done = rnnbench("merge", first, third, status=2)
    assert "shard 2/4 is missing: 3 trials: " in done.stderr
    assert "--incomplete" in done.stderr
    assert not list(tmp_path.glob("results/*-merged"))
    rnnbench("merge", first, third, "--incomplete", "-o", "some")
    assert "shard 2/4 is missing" in rnnbench("export", "some", "-o", "rows.csv").stderr


@pytest.mark.proof
def test_an_interrupted_shard_is_resumed_as_that_shard(rnnbench, ran, tmp_path):
    first, second, third, _ = runs(tmp_path)
    records = tmp_path / second / "records.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:-1]) + lines[-1][:80])
    error = rnnbench("merge", first, second, third, status=2).stderr
    assert f"{records.relative_to(tmp_path)}:4: the last line is cut short" in error
    assert "shard 2/4 lacks 1 trial" in error
    rnnbench("run", "--resume", second)
    assert json.loads((tmp_path / second / "run.json").read_text())["shard"]["number"] == 2
    assert "warning" not in rnnbench("merge", first, second, third).stderr


def test_a_merged_run_is_not_resumed(rnnbench, made, tmp_path):
    rnnbench("merge", *runs(tmp_path), "-o", "whole")
    error = rnnbench("run", "--resume", "whole", status=2).stderr
    assert "resume the run of a shard, and merge them again" in error
    error = rnnbench("run", "--resume", runs(tmp_path)[0], "--shard", "1/4", status=2).stderr
    assert "do not give --shard" in error


@pytest.mark.parametrize("shard", ["0/8", "9/8", "x"])
@pytest.mark.parametrize("command", ["run", "list"])
def test_a_shard_that_cannot_be_is_a_mistake_in_the_command(rnnbench, command, shard):
    error = rnnbench(command, *OPTIONS, "--shard", shard, status=2).stderr
    assert f"Invalid value for '--shard': '{shard}'" in error


def test_two_machines_have_a_report_each_and_a_page_that_compares_their_anchors(rnnbench, made, tmp_path):
    for name, cpu in zip(runs(tmp_path), ("Fake CPU 1", "Fake CPU 2", "Fake CPU 1", ""), strict=True):
        info = json.loads((tmp_path / name / "run.json").read_text())
        info["machine"]["cpu"] = cpu or info["machine"]["cpu"]
        (tmp_path / name / "run.json").write_text(json.dumps(info))
    assert "different machines" in rnnbench("merge", *runs(tmp_path), "-o", "whole").stderr
    page = tmp_path / rnnbench("report", "whole").stdout.strip()
    text = page.read_text()
    assert [text.count(f"Fake CPU {number}") for number in (1, 2)] == [1, 1]
    reports = sorted(path.read_text() for path in page.parent.glob("*/report.md"))
    assert sorted("6 trials: 6 ok" in report for report in reports) == [False, True]
    assert sorted("3 trials: 3 ok" in report for report in reports) == [False, True]
    error = rnnbench("export", "whole", "--format=pyperf", "-o", "pyperf.json", status=2).stderr
    assert "figures of 2 machines" in error
    shard = error.split("for example ")[1].strip()
    rnnbench("export", shard, "--format=pyperf", "-o", "pyperf.json")
    assert json.loads((tmp_path / "pyperf.json").read_text())["benchmarks"]


def test_without_a_named_backend_the_plan_does_not_depend_on_what_is_installed(rnnbench, monkeypatch):
    whole = rnnbench("list", "sizes.yaml", "--shard", "1/1", "--anchors=none").stdout.split()
    monkeypatch.setattr("rnnbench.plan.named_targets.installed_backends", lambda: ["numpy"])
    assert rnnbench("list", "sizes.yaml", "--shard", "1/1", "--anchors=none").stdout.split() == whole
    assert {line.split("/")[1].split(":")[0] for line in whole} > {"numpy", "fake"}


@pytest.mark.proof
def test_the_site_finds_the_shards_of_the_history_in_a_merged_run(rnnbench, ran, tmp_path):
    pytest.importorskip("duckdb")
    names = runs(tmp_path)
    rnnbench("merge", *names)
    rnnbench("history", "add", *names[:3])
    for name in names:
        shutil.rmtree(tmp_path / name)
    rnnbench("site")
    assert len(list((tmp_path / "reports/site").glob("records/*.json"))) == 6
