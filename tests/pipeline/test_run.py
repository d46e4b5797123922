"""Whole runs on the fake backend: whatever one trial does, the run goes on, and its record says what happened."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import psutil
import pytest
from harness_trials import SilentObserver, check_trial, context_in, expected_failure, make_trial, run_trials
from killed_runs import written
from planted_package import install, write_later
from quick_tests import for_proof
from rnnbench_fake import HANGING, VERSION, FakeBackend
from unasked import unasked_adapters
from waiting import PATIENCE_S, ended, started_from_now, wait_until

from rnnbench import pipeline
from rnnbench.backends import unchanged
from rnnbench.cases import Limits, Measure
from rnnbench.cli.exit_status import NONCONFORMING, OK, exit_status
from rnnbench.pipeline.record import Journal
from rnnbench.pipeline.run import see_files
from rnnbench.pipeline.same_programs import SamePrograms
from rnnbench.plan import begin_run, examine_all, resume_run
from rnnbench.results import Store, not_believed, read_run

pytestmark = pytest.mark.usefixtures("few_checks")

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
        "wrong-public-once-timed": "nonconforming",
        "sample-segfaults": "crashed",
        "sample-raises": "run-failed",
    }
    measure = Measure(budget=0.1, processes=1)
    trials = [make_trial(f"fake:{route}", measure=measure) for route in routes]
    trials.append(make_trial("fake:honest", time="fused"))
    run, records = run_trials(trials, tmp_path_factory.mktemp("results"))
    return run, {(r.route, r.params.time): r for r in records.values()}, routes


def test_every_trial_has_the_outcome_of_what_it_did(mixed):
    _, records, routes = mixed
    assert {route: records[route, "looped"].outcome for route in routes} == routes


def test_a_record_says_of_which_run_it_is(mixed):
    """By the run's seed: a line that was pasted from another run is not read as one of this."""
    run, records, _ = mixed
    assert {record.run_seed for record in records.values()} == {read_run(run).info.seed}


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


def test_an_honest_trial_beside_crashing_ones_has_all_of_its_figures(mixed):
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


def test_a_wrong_number_is_found_at_any_step_on_either_path_and_in_timed_calls(mixed):
    _, records, _ = mixed
    assert records["wrong-third-step", "looped"].conformance["values"].verdict == "fail"
    assert records["wrong-bound", "looped"].conformance["bound"].verdict == "fail"
    for route, where in (("wrong-once-timed", "calls: off"), ("wrong-public-once-timed", "on the public path")):
        late = records[route, "looped"].conformance
        assert late["values"].verdict == late["bound"].verdict == "pass"
        assert late["timed"].verdict == "fail"
        assert where in late["timed"].detail


def test_no_figures_come_from_a_trial_that_died(mixed):
    _, records, _ = mixed
    assert records["sample-segfaults", "looped"].latency("bound") is None


@pytest.mark.parametrize(
    ("route", "limits", "outcome"),
    [
        ("build-hangs", Limits(build=0.5), "timed-out"),
        *for_proof(("check-hangs", Limits(trial=1.5), "timed-out")),
        ("check-grows", Limits(memory=400 << 20), "out-of-memory"),
    ],
)
def test_limits_end_the_trial_and_all_of_its_processes(route, limits, outcome, tmp_path):
    started = started_from_now()
    trial = make_trial(f"fake:{route}", limits=limits)
    _, records = run_trials([trial], tmp_path)
    assert records[trial.id].outcome == outcome
    wait_until(lambda: ended(started()), "a process of the trial is left")


def test_two_trials_with_the_same_program_and_plan_are_measured_once(tmp_path):
    first = make_trial()
    again = dataclasses.replace(first, steps=16)
    _, records = run_trials([first, again], tmp_path)
    assert records[first.id].same_as is None
    assert records[again.id].same_as == first.id
    assert records[again.id].latency("bound") == records[first.id].latency("bound")


@pytest.mark.proof
def test_a_second_process_gives_a_second_median(tmp_path):
    """Any precision will do here, as one that is not reached may ask for a third."""
    trial = make_trial(measure=Measure(budget=0.1, processes=2, precision=1e9))
    run, records = run_trials([trial], tmp_path)
    assert len(records[trial.id].latency("bound").process_medians) == 2
    samples = np.load(run / "samples" / f"{trial.digest}.public.npy")
    assert set(samples[:, 0]) == {0, 1}


@pytest.mark.proof
def test_an_interrupted_run_keeps_its_finished_trials_and_can_be_resumed(tmp_path):
    """The real signal to the real command, in the middle of a trial that would take an hour.

    `cli/test_ending.py` has the other signals, at other moments.
    """
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
    wait_until(lambda: written(tmp_path) > 0 and _hangs(tmp_path), "no trial finished, or none hangs", process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert workers
    wait_until(lambda: ended(workers), "a worker outlived the suite")
    (run,) = (tmp_path / "results").iterdir()
    done = {record.trial for record in read_run(run).records}
    assert done
    left = resume_run(run).trials
    assert left
    assert not done & {trial.id for trial in left}


def _hangs(folder):
    return any(HANGING in path.read_text() for path in folder.glob("results/[!.]*/logs/*.log"))


@pytest.mark.proof
def test_expected_failures_are_recorded_as_such_and_those_that_pass_too(tmp_path):
    entries = (
        expected_failure(route=("wrong-third-step",), also=("chunks", "start", "state", "batch", "exchange")),
        expected_failure(route=("build-fails",), check=(), outcome="build-failed"),
        expected_failure(route=("honest",)),
    )
    trials = [make_trial(f"fake:{route}") for route in ("wrong-third-step", "wrong-bound", "build-fails", "honest")]
    plan = begin_run(trials, Store(tmp_path), {"harness": entries})
    pipeline.run_trials(plan, SilentObserver())
    records = {record.route: record for record in read_run(plan.folder).records}
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
    assert exit_status([records["build-fails"]]) == OK
    assert exit_status([records["honest"]]) == NONCONFORMING


def test_the_observer_is_told_each_stage_and_each_record(tmp_path):
    observer, trial = SilentObserver(), make_trial()
    pipeline.run_trials(begin_run([trial, make_trial(time="fused")], Store(tmp_path)), observer)
    stages = [stage for _, stage in observer.stages]
    assert list(dict.fromkeys(stages)) == ["import", "build", "load", "reference", "check", "sample, process 1"]
    assert [record.outcome for record in observer.records] == ["unsupported", "ok"]


@pytest.mark.parametrize("keep", [*for_proof(True), False])
def test_a_run_that_has_ended_keeps_compiled_files_only_where_it_is_told_to(tmp_path, keep):
    plan = begin_run([make_trial()], Store(tmp_path))
    pipeline.run_trials(plan, SilentObserver(), keep_artifacts=keep)
    assert (plan.folder / "artifacts").exists() is keep
    info = read_run(plan.folder).info
    assert info.finished is not None
    assert {"total", "import", "build", "check", "reference", "sample"} <= info.seconds.keys()


def test_a_resumed_run_has_the_figures_of_its_cold_build(tmp_path):
    """The build came before the interrupt, and its artifact is in the run's folder."""
    trial = make_trial()
    plan = begin_run([trial], Store(tmp_path))
    first = check_trial(trial, context_in(plan.folder))
    again = check_trial(trial, context_in(plan.folder))
    assert first.built.figures.origin == again.built.figures.origin == "cold"
    assert again.built.figures == first.built.figures


@pytest.mark.parametrize("command", [*for_proof("run"), "check"])
def test_a_package_that_is_edited_while_a_run_is_on_is_named_in_it(tmp_path, monkeypatch, command):
    monkeypatch.syspath_prepend(site := install(tmp_path / "site"))
    probe = FakeBackend.probe
    monkeypatch.setattr(
        FakeBackend, "probe", lambda self: dataclasses.replace(probe(self), versions={"planted": "1.0"})
    )

    class Edits(SilentObserver):
        def finished(self, record, side=""):
            write_later(site / "planted/code.so", b"edoc")

    with unasked_adapters():
        for observer, edited in ((Edits(), ("planted",)), (SilentObserver(), ())):
            plan = begin_run([make_trial()], Store(tmp_path))
            if command == "run":
                pipeline.run_trials(plan, observer)
            else:
                pipeline.check_trials(plan, observer, jobs=1)
            run = read_run(plan.folder)
            assert run.info.edited == edited
            told = [warning for warning in run.warnings if "files of planted changed while the run was on" in warning]
            assert bool(told) == bool(edited)


def test_an_edit_of_the_suite_is_seen_where_another_environment_runs_the_trials(monkeypatch):
    """As in a night: each version has an environment, and all of them have the files of this suite."""
    (examined,) = examine_all([make_trial()])
    elsewhere = dataclasses.replace(
        examined, support=dataclasses.replace(examined.support, interpreter="/other/bin/python")
    )
    files = see_files([elsewhere])
    assert files.changed() == ()
    monkeypatch.setattr(unchanged, "_sources", lambda place: "edited")
    assert "rnnbench" in files.changed()


@pytest.mark.proof
def test_no_figures_are_believed_of_a_trial_whose_package_was_replaced_while_it_was_measured(tmp_path, monkeypatch):
    """Its later processes import another version than the record names."""
    monkeypatch.syspath_prepend(site := install(tmp_path / "site"))
    probe = FakeBackend.probe
    monkeypatch.setattr(
        FakeBackend, "probe", lambda self: dataclasses.replace(probe(self), versions={"planted": "1.0"})
    )

    class Upgrades(SilentObserver):
        def stage(self, *told):
            write_later(site / "planted/code.so", b"edoc")

    with unasked_adapters():
        for observer, is_believed in ((SilentObserver(), True), (Upgrades(), False)):
            plan = begin_run([make_trial(), make_trial("numpy:eager")], Store(tmp_path))
            pipeline.run_trials(plan, observer)
            ours, others = read_run(plan.folder).records
            assert (not not_believed(ours.findings), not not_believed(others.findings)) == (is_believed, True)
            assert ("files of planted changed after the version was read" in not_believed(ours.findings)) != is_believed


@pytest.mark.parametrize(("claimed", "told"), [("0.9", True), *for_proof(("1.0", False))])
def test_a_version_that_the_packages_metadata_does_not_have_is_told(tmp_path, monkeypatch, claimed, told):
    monkeypatch.setenv(VERSION, claimed)
    trial = make_trial(measure=Measure(budget=0.01, processes=1))
    with unasked_adapters():
        _, records = run_trials([trial], tmp_path)
    details = [finding.detail for finding in records[trial.id].findings]
    assert any(f"says rnnbench-fake {claimed}, and the metadata" in detail for detail in details) == told


def test_each_record_is_written_through_one_journal(tmp_path):
    """`run`, `check` and `ab` write records with it, so that their records and samples are the same."""
    observer, trial = SilentObserver(), make_trial()
    plan = begin_run([trial], Store(tmp_path))
    checked = check_trial(trial, context_in(plan.folder))
    record = Journal(plan, observer).write(pipeline.not_sampled(checked))
    assert observer.records == list(read_run(plan.folder).records) == [record]
    assert record.timing.build_origin == "cold"
    untimed = Journal(plan, observer).write(pipeline.not_sampled(checked), timed=False)
    assert untimed.timing.build_origin is None
    assert untimed.conformance == record.conformance


@pytest.mark.proof
def test_trials_without_a_failure_have_the_same_program_where_artifact_and_call_plan_are_the_same(tmp_path):
    first = make_trial()
    others = [dataclasses.replace(first, steps=16), make_trial(chunk=2)]
    same = SamePrograms()
    checked = [check_trial(trial, context_in(tmp_path), same.compare) for trial in (first, *others)]
    assert same.same_as == {others[0].id: checked[0]}
