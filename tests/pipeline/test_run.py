"""Whole runs on the fake backend: whatever one trial does, the run goes on, and its record says what happened."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import psutil
import pytest
from harness_trials import Silent, make_trial, run_trials
from rnnbench_fake import HANGING
from waiting import PATIENCE_S, ended, wait_until

from rnnbench.cases import ExpectedFailure
from rnnbench.cases.trial import Limits, Measure
from rnnbench.results.store import Store, read_run
from rnnbench.run.account import Account
from rnnbench.run.check import Checking
from rnnbench.run.execute import execute
from rnnbench.run.plan import begin, remaining
from rnnbench.run.session import EXIT_NONCONFORMING, EXIT_OK, exit_status

PAGES = 1 << 20
"""Bytes by which a worker may shrink between two readings: the allocator gives back, and the kernel counts late."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """One trial for each way to fail, with honest ones before, between and after them."""
    routes = {
        "honest": "ok",
        "support-raises": "run-failed",
        "build-fails": "build-failed",
        "build-raises": "build-failed",
        "build-segfaults": "crashed",
        "load-segfaults": "crashed",
        "check-raises": "run-failed",
        "wrong-third-step": "nonconforming",
        "wrong-bound": "nonconforming",
        "wrong-once-timed": "nonconforming",
        "sample-segfaults": "crashed",
        "sample-raises": "run-failed",
    }
    measure = Measure(budget=0.3, processes=1)
    trials = [make_trial(f"fake:{route}", measure=measure) for route in routes]
    trials.append(make_trial("fake:honest", time="fused"))
    run, records = run_trials(trials, tmp_path_factory.mktemp("results"))
    return run, {(r.route, r.params.time): r for r in records.values()}, routes


def test_every_trial_has_the_outcome_of_what_it_did(mixed):
    _, records, routes = mixed
    assert {route: records[route, "looped"].outcome for route in routes} == routes


def test_a_failure_says_its_stage_and_reason(mixed):
    _, records, _ = mixed
    stages = {route: records[route, "looped"].stage for route, _ in records}
    assert stages["build-fails"] == "build"
    assert "expected ';'" in records["build-fails", "looped"].reason
    assert stages["load-segfaults"] == "load"
    assert "SIGSEGV" in records["load-segfaults", "looped"].reason
    assert stages["check-raises"] == "check"
    assert "lost its device" in records["check-raises", "looped"].reason
    assert stages["sample-segfaults"] == "sample"


def test_unsupported_is_recorded_with_its_reason_and_never_run(mixed):
    _, records, _ = mixed
    record = records["honest", "fused"]
    assert (record.outcome, record.stage, record.reason) == ("unsupported", "support", "the fake has no RNN operator")
    assert record.timing.build_s is None
    assert record.latency("bound") is None


def test_an_honest_trial_beside_crashing_ones_is_measured_whole(mixed):
    run, records, _ = mixed
    record = records["honest", "looped"]
    assert all(figure.verdict != "fail" for figure in record.conformance.values())
    assert {"values", "chunks", "bound", "timed"} <= set(record.conformance)
    assert record.timing.build_origin == "cold"
    for latency in (record.latency("bound"), record.latency("public")):
        assert 0 < latency.min <= latency.median <= latency.p90 <= latency.p99 <= latency.max
        assert latency.per_step == pytest.approx(latency.median / 4)
        assert len(latency.process_medians) == 1
    assert 0 < record.memory.harness <= record.memory.imported + PAGES
    assert record.memory.imported <= record.memory.run_peak + PAGES
    assert record.environment.threads_seen >= 1
    assert len(record.environment.affinity) == 1
    samples = np.load(run / "samples" / f"{record.trial[-8:]}.bound.npy")
    assert samples.shape == (record.latency("bound").kept, 5)
    assert np.all(np.diff(samples[:, 2]) >= 0)


def test_a_wrong_number_is_found_wherever_it_hides(mixed):
    _, records, _ = mixed
    assert records["wrong-third-step", "looped"].conformance["values"].verdict == "fail"
    assert records["wrong-bound", "looped"].conformance["bound"].verdict == "fail"
    late = records["wrong-once-timed", "looped"]
    assert late.conformance["bound"].verdict == "pass"
    assert late.conformance["timed"].verdict == "fail"


def test_no_figures_come_from_a_trial_that_died(mixed):
    _, records, _ = mixed
    assert records["sample-segfaults", "looped"].latency("bound") is None


@pytest.mark.parametrize(
    ("route", "limits", "outcome"),
    [
        ("build-hangs", Limits(build=0.5), "timed-out"),
        ("check-hangs", Limits(trial=1.5), "timed-out"),
        ("check-grows", Limits(memory=400 << 20), "out-of-memory"),
    ],
)
def test_limits_end_the_trial_and_nothing_of_it_lives_on(route, limits, outcome, tmp_path):
    trial = make_trial(f"fake:{route}", limits=limits)
    _, records = run_trials([trial], tmp_path)
    assert records[trial.id].outcome == outcome
    assert ended(psutil.Process().children())


def test_two_trials_with_the_same_program_and_plan_are_measured_once(tmp_path):
    first = make_trial()
    again = dataclasses.replace(first, steps=16)
    _, records = run_trials([first, again], tmp_path)
    assert records[first.id].same_as is None
    assert records[again.id].same_as == first.id
    assert records[again.id].latency("bound") == records[first.id].latency("bound")


def test_a_second_process_is_a_second_draw(tmp_path):
    trial = make_trial(measure=Measure(budget=0.1, processes=2))
    run, records = run_trials([trial], tmp_path)
    assert len(records[trial.id].latency("bound").process_medians) == 2
    samples = np.load(run / "samples" / f"{trial.digest}.public.npy")
    assert set(samples[:, 0]) == {0, 1}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_is_finished_and_goes_on(tmp_path, how):
    """The real signal to the real command, in the middle of a trial that would take an hour."""
    case = tmp_path / "slow.yaml"
    case.write_text(
        "schema: 1\nname: slow\nmodel: {cell: lstm, input: 3, hidden: 4}\nworkload: {steps: 8, chunk: [2, 4]}\n"
        "strategy: {time: looped, state: stitched}\nlimits: {build: 1h, trial: 1h}\nmeasure: {budget: 50ms}\n"
    )
    command = [sys.executable, "-m", "rnnbench", "run", str(case), "--no-baseline"]
    folders = ["--results", str(tmp_path / "results"), "--reports", str(tmp_path / "reports")]
    process = subprocess.Popen(
        [*command, "--backend", "fake:build-fails,fake:build-hangs", *folders],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    wait_until(lambda: bool(_records(tmp_path)) and _hangs(tmp_path), "no trial finished, or none hangs", process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(how)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert workers
    wait_until(lambda: ended(workers), "a worker outlived the suite")
    (run,) = (tmp_path / "results").iterdir()
    done = {record.trial for record in read_run(run).records}
    assert done
    left = remaining(run)
    assert left
    assert not done & {trial.id for trial in left}


def _records(folder):
    return [json.loads(line) for path in folder.glob("results/*/records.jsonl") for line in path.open()]


def _hangs(folder):
    return any(HANGING in path.read_text() for path in folder.glob("results/*/logs/*.log"))


def test_a_worker_dies_with_the_suite(tmp_path):
    """SIGKILL leaves no time to clean up."""
    script = tmp_path / "start.py"
    script.write_text(
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from harness_trials import make_trial\n"
        "from rnnbench.run.prepare import examine, start_worker\n"
        "from rnnbench.run.process import Workplace\n"
        "worker = start_worker(examine(make_trial()), Workplace.of_run(Path(sys.argv[1])), 'log')\n"
        "print(worker._process.pid, flush=True)\n"
        "sys.stdin.readline()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, str(script), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as suite:
        worker = psutil.Process(int(suite.stdout.readline()))
        suite.stdin.write("\n")
    assert suite.returncode == -signal.SIGKILL
    wait_until(lambda: ended([worker]), "the worker outlived the suite")


def known(route, **changed):
    entry = {"route": (route,), "check": (), "also": (), "outcome": None, **changed}
    upstream = "https://example.org/1"
    return ExpectedFailure(place="", backend="fake", version={}, where={}, reason="Known.", upstream=upstream, **entry)


def test_what_is_known_to_fail_is_told_as_such_and_what_passes_is_told_too(tmp_path):
    entries = (
        known("wrong-third-step", check=("values",), also=("chunks", "start", "state", "batch", "exchange")),
        known("build-fails", outcome="build-failed"),
        known("honest", check=("values",)),
    )
    trials = [make_trial(f"fake:{route}") for route in ("wrong-third-step", "wrong-bound", "build-fails", "honest")]
    run = begin(trials, Store(tmp_path), {"harness": entries})
    execute(trials, run, seed=0, account=Account(), observer=Silent())
    records = {record.route: record for record in read_run(run).records}
    assert {route: record.outcome for route, record in records.items()} == {
        "wrong-third-step": "nonconforming",
        "wrong-bound": "nonconforming",
        "build-fails": "build-failed",
        "honest": "ok",
    }
    failed = {name for name, figure in records["wrong-third-step"].conformance.items() if figure.verdict == "fail"}
    assert {figure.what for figure in records["wrong-third-step"].expected_failures} <= failed
    assert records["build-fails"].fails_as_expected
    assert not records["wrong-bound"].fails_as_expected
    assert records["honest"].passes_unexpectedly
    assert exit_status([records["build-fails"]]) == EXIT_OK
    assert exit_status([records["honest"]]) == EXIT_NONCONFORMING


def test_trials_that_are_only_checked_share_imports_and_no_process(tmp_path):
    """A crash, a hang and a wrong number end their own trial; the next one starts where none has been."""
    routes = ["honest", "check-raises", "load-segfaults", "wrong-third-step", "build-segfaults", "check-hangs"]
    hanging = Limits(trial=1.5)
    trials = [make_trial(f"fake:{route}", limits=hanging if "hangs" in route else Limits()) for route in routes]
    trials += [make_trial("fake:honest", chunk=chunk) for chunk in (1, 2, 3)]
    run = begin(trials, Store(tmp_path))
    checking = Checking(run, Account(), Silent())
    checking.check(trials, jobs=1)
    records = read_run(run).records
    assert len(records) == len(trials)
    assert {r.outcome for r in records if r.route == "honest"} == {"ok"}
    assert {r.route: r.outcome for r in records if r.route != "honest"} == {
        "check-raises": "run-failed",
        "load-segfaults": "crashed",
        "wrong-third-step": "nonconforming",
        "build-segfaults": "crashed",
        "check-hangs": "timed-out",
    }
    assert checking.imports == 6, "one for each route: the environment that a route asks for is its own"
    assert ended(psutil.Process().children())
