"""`rnnbench history backfill` and `bisect` as a user meets them, with releases of the fake backend."""

from __future__ import annotations

import pytest
from fake_releases import NOT_INSTALLABLE, fake_index, fake_measurements

pytest.importorskip("duckdb")

ONE_TRIAL = ("--filter", "chunk=4,state=stitched")


@pytest.fixture
def index(monkeypatch):
    fake_index(monkeypatch, {"1.0": "", "1.2": NOT_INSTALLABLE, "1.10": "RNNBENCH_FAKE_WRONG=1"})


@pytest.mark.proof
def test_releases_are_measured_in_their_environments_and_told_with_their_reasons(rnnbench, folder, index, monkeypatch):
    monkeypatch.setattr("rnnbench.sampling.pair_sampling.BLOCK_S", 0.002)
    arguments = ("history", "backfill", "fake:honest", "tiny.yaml", *ONE_TRIAL)
    done = rnnbench(*arguments, "--pairs=2", "--reference=1.0", "--environments", str(folder / "env"))
    for said in (
        "3 releases of rnnbench-fake, each beside 1.0, 1 trial.",
        "1.10: nonconforming: values: ",
        "1.2: 'rnnbench-fake==1.2': the environment could not be made: ERROR: No matching distribution",
        "1.0: measured in",
        "1.2 was not measured: unavailable: ",
        "bound latency over that of 1.0",
    ):
        assert said in done.stdout
    assert "against the release before" not in done.stdout, "the intervals of each trial are on the page alone"
    query = (
        "SELECT release, outcome, len(bound_reference_ratios) AS pairs, runs.versions ->> '$.fake' AS versions "
        "FROM rows JOIN runs USING (run_id) ORDER BY release"
    )
    assert rnnbench("history", "sql", query, "--csv").stdout.splitlines()[1:] == [
        '1.0,ok,2,"{""rnnbench-fake"":""1.0""}"',
        '1.10,nonconforming,,"{""rnnbench-fake"":""1.10""}"',
        '1.2,unavailable,,"{""rnnbench-fake"":""1.2""}"',
    ]
    page = (folder / "reports" / "releases-rnnbench-fake" / "releases.md").read_text()
    assert "against the release before" in page
    assert page.index("| 1.2 |") < page.index("| 1.10 |"), "the order is that of the versions"
    assert "measured in" not in rnnbench(*arguments, "--pairs=2").stdout, "all is there, also the reference"


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("minors", "told", "measured"),
    [((), "3 releases", ["1.2.1", "1.2.0", "1.0"]), (("--minors",), "2 releases", ["1.2.1", "1.0"])],
)
def test_with_minors_the_newest_patch_of_each_is_measured_and_else_every_release(
    rnnbench, monkeypatch, minors, told, measured
):
    fake_index(monkeypatch, dict.fromkeys(("1.0", "1.2.0", "1.2.1"), ""))
    compared = fake_measurements(monkeypatch, dict.fromkeys(("1.0", "1.2.0", "1.2.1"), 1.0))
    done = rnnbench("history", "backfill", "fake:honest", "tiny.yaml", *ONE_TRIAL, *minors)
    assert f"{told} of rnnbench-fake, each beside 1.2.1, 1 trial." in done.stdout
    assert compared == measured
    assert "Not measured yet" not in done.stdout


def test_releases_for_which_there_was_no_time_are_named(rnnbench, monkeypatch):
    fake_index(monkeypatch, dict.fromkeys(("1.0", "1.1", "1.2"), ""))
    fake_measurements(monkeypatch, dict.fromkeys(("1.0", "1.1", "1.2"), 1.0))
    done = rnnbench("history", "backfill", "fake:honest", "tiny.yaml", *ONE_TRIAL, "--within=1ms")
    assert "Not measured yet, the time was spent: 1.0, 1.1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--within=soon",), "'--within': expected a duration"),
        (("--versions=>=9",), "rnnbench-fake: no release is >=9"),
        (("--reference=newest",), "expected a version of the package, such as 1.24.1, got 'newest'"),
    ],
)
def test_a_wrong_option_of_a_backfill_is_refused_and_writes_nothing(rnnbench, folder, index, arguments, message):
    done = rnnbench("history", "backfill", "fake:honest", "tiny.yaml", *arguments, status=2)
    assert message in done.stderr
    assert not (folder / "results").exists()


def test_a_wrong_release_is_found_without_timing(rnnbench, folder, index):
    arguments = ("bisect", "tiny.yaml", "--backend=fake:honest", *ONE_TRIAL, "--on=outcome", "--good=1.0", "--bad=1.10")
    done = rnnbench(*arguments, "--set=workload.batch=[2]", "--environments", str(folder / "env"), status=1)
    assert "1.0: good: ok" in done.stdout
    repeated = "check tiny.yaml --backend=fake:honest --set 'workload.batch=[2]' --only tiny/"
    assert f"{folder}/env/1.10/bin/python -m rnnbench {repeated}" in done.stdout
    assert "The first bad release is one of 1.2, 1.10. The last good one is 1.0." in done.stdout


def test_a_slow_release_is_found_with_the_commands_that_repeat_each_step(rnnbench, monkeypatch):
    fake_index(monkeypatch, dict.fromkeys(["1.0", "1.1", "1.2", "1.3"], ""))
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.1": 1.0, "1.2": 1.05, "1.3": 1.05})
    arguments = ("bisect", "tiny.yaml", "--backend=fake:honest", *ONE_TRIAL, "--good=1.0")
    done = rnnbench(*arguments, "--bad=1.3")
    assert "1.1: good: SAME, " in done.stdout
    assert "--a 'rnnbench-fake==1.0' --b 'rnnbench-fake==1.2' --threshold 0.03 --budget 120s" in done.stdout
    assert "The first bad release is 1.2. The last good one is 1.1." in done.stdout
    assert "1.1 is not slower than 1.0: SAME" in rnnbench(*arguments, "--bad=1.1", status=2).stderr
    assert "--good 1.0 must be older than --bad 0.9" in rnnbench(*arguments, "--bad=0.9", status=2).stderr


def test_a_bisection_of_several_trials_names_them(rnnbench, index):
    done = rnnbench("bisect", "tiny.yaml", "--backend=fake:honest", "--good=1.0", "--bad=1.10", status=2)
    assert "a bisection takes one trial, and 4 are selected; add --only ID:" in done.stderr
