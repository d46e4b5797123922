"""`rnnbench ab` as a user meets it: a slowdown that one environment has is found, and where there is none, none is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from importlib.metadata import distribution
from pathlib import Path

import fake_records as fake
import pytest
from forked_workers import write_python
from harness_command import run_command
from quick_tests import for_proof

from rnnbench import pipeline
from rnnbench.history import VERDICTS_FILE
from rnnbench.results import append_record, compare_runs, not_believed, read_run
from rnnbench.sampling import pair_sampling
from rnnbench.worker.trial_process import RunFolders

pytest.importorskip("scipy")

CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 8, chunk: 4}
strategy: {time: looped, state: stitched}
"""


@pytest.fixture(autouse=True, scope="module")
def short(few_checks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sampling, "BLOCK_S", 0.002)
        patch.setattr(pair_sampling, "WARMUP_S", 0.01)
        yield


def ab_in(folder, *arguments, status, **variables):
    """Runs the command in a folder with `tiny.yaml` and with `new`, an environment like this one but for a variable."""
    (folder / "tiny.yaml").write_text(CASE)
    write_python(folder / "new" / "bin" / "python", variables)
    return run_command(folder, "ab", "tiny.yaml", "--backend=fake:honest", *arguments, status=status)


@pytest.fixture
def ab(tmp_path):
    return partial(ab_in, tmp_path)


@pytest.fixture(scope="module")
def spent(tmp_path_factory):
    """A folder with a comparison of an environment with itself whose budget was spent at once, and what it printed."""
    folder = tmp_path_factory.mktemp("spent")
    return folder, ab_in(folder, "--budget=10ms", status=0).stdout


@pytest.mark.proof
def test_a_slowdown_planted_in_one_environment_is_found_and_recorded(ab, tmp_path):
    """Four times as slow, so that no noise of a machine that does other things hides it, however long that takes."""
    done = ab("--b", "./new", "--budget=1h", status=1, RNNBENCH_FAKE_SLOWDOWN="3.0")
    assert "2 SLOWER" in done.stdout
    assert "B has the packages of A." in done.stdout
    assert "A verdict took" in done.stdout
    assert "\nA  ok " in done.stdout, "a line for the trial in each environment, which says in which"
    assert "\nB  ok " in done.stdout
    assert "Ratio: B over A" in " ".join(done.stdout.split())
    assert "A and B are one environment" not in done.stdout
    assert "A: Half of the 2 latencies have an interval of" in done.stdout
    assert "requested precision" not in done.stdout, "in ab a latency stops with its verdict"
    old, new = (read_run(path) for path in sorted((tmp_path / "results").iterdir()))
    assert (old.name[-2:], new.name[-2:]) == ("-a", "-b")
    assert old.info.started == new.info.started
    assert [record.outcome for run in (old, new) for record in run.records] == ["ok", "ok"]
    assert new.records[0].latency("bound").median > 1.3 * old.records[0].latency("bound").median
    for run in (old, new):
        assert run.info.conditions is not None
        assert "measures no roof" in run.records[0].floor.unmeasured
        assert run.records[0].latency("bound").sampling.warmup.calls > 0
        assert run.records[0].memory.growth_calls > run.records[0].latency("bound").count
    content = json.loads((new.path / "verdicts.json").read_text())
    assert content["b"]["environment"] == "./new"
    for entry in content["verdicts"]:
        assert entry["verdict"] == "SLOWER"
        assert len(entry["ratios"]) == len(entry["scatters"]) >= entry["observations"] >= 4
        assert entry["interval"][0] <= entry["ratio"] <= entry["interval"][1]
    (page,) = (tmp_path / "reports").glob("*/comparison.md")
    for said in ("2 SLOWER", "B is ./new.", "A verdict took"):
        assert said in page.read_text()
    again = run_command(tmp_path, "compare", old.name, new.name, status=1)
    assert "are the sides of one `rnnbench ab`" in " ".join(again.stdout.split())


def test_a_wrong_side_b_is_named_and_no_latency_is_compared(ab):
    done = ab("--b", "./new", status=1, RNNBENCH_FAKE_WRONG="1")
    assert "no longer conforms" in " ".join(done.stdout.split())
    assert "0 latency verdicts" in done.stdout


@pytest.mark.proof
def test_there_is_no_verdict_where_a_package_of_a_side_was_replaced_meanwhile(tmp_path):
    """The environment is asked for its versions first, and its workers are started then."""
    installed = Path(str(distribution("rnnbench-fake").locate_file("rnnbench_fake-1.0.dist-info")))
    shutil.copytree(installed, info := tmp_path / "upgraded" / "rnnbench_fake-2.0.dist-info")
    (info / "METADATA").write_text((installed / "METADATA").read_text().replace("Version: 1.0", "Version: 2.0"))
    write_python(tmp_path / "env" / "bin" / "python", {})
    (python := tmp_path / "upgrading" / "bin" / "python").parent.mkdir(parents=True)
    python.write_text(
        f"""#!/bin/sh
[ -e {tmp_path}/asked ] && export PYTHONPATH={info.parent}:$PYTHONPATH
touch {tmp_path}/asked
exec {tmp_path}/env/bin/python "$@"
"""
    )
    python.chmod(0o755)
    (tmp_path / "tiny.yaml").write_text(CASE)
    command = ("ab", "tiny.yaml", "--backend=fake:honest", "--b=./upgrading", "--budget=10ms")
    assert "0 latency verdicts" in run_command(tmp_path, *command, status=0).stdout
    old, new = (read_run(path).records for path in sorted((tmp_path / "results").iterdir()))
    assert {not_believed(record.findings) for record in old} == {""}
    assert all("files of rnnbench-fake changed" in not_believed(record.findings) for record in new)


@pytest.mark.proof
def test_a_side_of_a_comparison_is_not_resumed_with_the_versions_of_the_other(spent):
    folder, _ = spent
    for name, side in zip("AB", sorted((folder / "results").iterdir()), strict=True):
        errors = run_command(folder, "run", "--resume", side.name, status=2).stderr
        assert f"{side.name} is side {name} of a comparison of two environments" in errors
        assert "give the command that compared them again" in errors


@pytest.mark.proof
def test_a_worker_that_dies_fails_its_own_trial_on_both_sides(ab, tmp_path):
    ab("--backend=fake:sample-segfaults", "--budget=10ms", status=3)
    for path in (tmp_path / "results").iterdir():
        ends = {record.route: (record.outcome, record.stage) for record in read_run(path).records}
        assert ends == {"honest": ("ok", ""), "sample-segfaults": ("crashed", "sample")}


@pytest.mark.proof
@pytest.mark.parametrize("failing", [0, *for_proof(1)])
def test_a_trial_that_failed_on_one_side_decides_the_status_where_nothing_regressed(ab, monkeypatch, failing):
    """It is not measured here: the comparison is of two runs without a record, and then one of them gets one."""

    def compare(both, *_):
        comparison = replace(compare_runs(*map(read_run, both.runs)), about=("It was made up.",))
        append_record(both.runs[failing], fake.record(outcome="crashed"))
        return comparison

    monkeypatch.setattr(pipeline, "compare_sides", compare)
    ab(status=3)


@pytest.mark.proof
def test_a_comparison_that_is_interrupted_while_it_clears_its_folders_has_its_verdicts(ab, monkeypatch, tmp_path):
    def interrupt(folders):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolders, "clear", interrupt)
    ab("--budget=10ms", status=130)
    a, b = sorted((tmp_path / "results").iterdir())
    assert all(read_run(side).info.finished for side in (a, b))
    assert json.loads((b / VERDICTS_FILE).read_text())["a"]["run"] == a.name


def test_a_budget_that_is_spent_ends_undecided(spent):
    assert "2 UNDECIDED" in spent[1]


def test_where_no_side_is_named_the_command_says_that_it_compares_an_environment_with_itself(spent):
    assert "A and B are one environment" in spent[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--a", ".venv-nowhere"), "no virtual environment"),
        (("--budget", "soon"), "'--budget': expected a duration such as 60s"),
        (("--threshold", "3"), "threshold"),
    ],
)
def test_mistakes_have_a_message_before_anything_runs(ab, tmp_path, arguments, message):
    assert message in ab(*arguments, status=2).stderr
    assert not (tmp_path / "results").exists()
