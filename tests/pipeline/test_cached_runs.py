"""Runs that share a cache: the second one builds nothing, says so, and is held to all that the first one is."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from functools import partial

import psutil
import pytest
from harness_trials import SilentObserver, begin_with_seed, context_in, make_trial
from quick_tests import for_proof
from rnnbench_fake import FakeBackend
from waiting import PATIENCE_S, wait_until

from rnnbench import conformance, pipeline
from rnnbench.backends import program_identity
from rnnbench.cache import ENTRY, Cache, CacheFolder
from rnnbench.conformance import kept_references
from rnnbench.content_digest import intact, text_with_digest
from rnnbench.pipeline import build_and_check, build_and_check_trial, check_trials
from rnnbench.pipeline.batches import build_and_check_all
from rnnbench.plan import begin_run, close_adapters, examine
from rnnbench.results import CheckResult, Finding, FindingKind, Store, not_believed, read_run
from rnnbench.stages import Examined
from rnnbench.worker import kept_programs, start_trial_worker, trial_process, trial_worker
from rnnbench.worker.prepared_program import PreparedProgram

pytestmark = pytest.mark.usefixtures("few_checks")

TRIAL, NUMPY = make_trial(), make_trial("numpy:eager")


@pytest.fixture
def cache(tmp_path):
    return CacheFolder(tmp_path / "cache", 1 << 20)


def run(folder, cache, trials=(TRIAL,), **how):
    """The records of a run."""
    plan = begin_with_seed(list(trials), Store(folder / "results"))
    pipeline.run_trials(plan, SilentObserver(), cache=cache, **how)
    return read_run(plan.folder).records


def entries(cache):
    return {path.parent for path in cache.path.glob(f"fake/*/{ENTRY}")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Records of four runs: the first one, the second one, one that builds everything, and one after it."""
    folder = tmp_path_factory.mktemp("runs")
    cache = CacheFolder(folder / "cache", 1 << 20)
    caches = (cache, cache, replace(cache, reads=False), cache)
    return [run(folder, cache)[0] for cache in caches], cache


def test_the_second_run_builds_nothing_and_says_when_it_was_built(runs):
    (first, second, *_), cache = runs
    assert (first.timing.build_origin, first.timing.built) == ("cold", "")
    assert (second.outcome, second.timing.build_origin) == ("ok", "cached")
    assert second.timing.built[:4].isdigit()
    assert second.timing.own_build_s is None, "no comparison takes it for a new measurement"
    assert (second.artifact, second.findings) == (first.artifact, ())
    assert len(entries(cache)) == 3, "the program, its program of one step, and the one of the dispatch floor"


def test_the_figures_of_its_build_are_those_of_the_run_that_built_it(runs):
    (first, second, *_), _ = runs
    assert second.timing.build_s == first.timing.build_s
    assert second.timing.tail_build_s == first.timing.tail_build_s
    assert second.memory.build_peak == first.memory.build_peak


def test_a_run_that_rebuilds_builds_everything_for_those_that_follow(runs):
    (_, _, rebuilt, later), _ = runs
    assert (rebuilt.timing.build_origin, later.timing.build_origin) == ("cold", "cached")
    assert later.timing.build_s == rebuilt.timing.build_s


CHANGES = {
    "source": lambda patch: patch.setattr(trial_process, "sources_digest", lambda backend: "other sources"),
    "flag": lambda patch: patch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"),
    "package": lambda patch: patch.setattr(trial_process, "package_digest", lambda name: f"another {name}"),
    "kernels": lambda patch: patch.setenv("ATEN_CPU_CAPABILITY", "default"),
    "processor": lambda patch: patch.setattr(program_identity, "processor", lambda: "another one"),
    "compiler": lambda patch: patch.setattr(program_identity, "_tools", lambda: {"cc": ["/usr/bin/cc", 1, 2]}),
}


def with_cache(run, cache):
    context = context_in(run)
    return replace(context, folders=replace(context.folders, cache=cache))


def build(run, cache, trial=TRIAL):
    """The trial, or what was examined of it, built and checked in a run's folder."""
    context = with_cache(run, cache)
    examined = trial if isinstance(trial, Examined) else examine(trial)
    return build_and_check_trial(examined, start_trial_worker(examined, context.folders, "log"), context)


@pytest.mark.proof
def test_a_program_of_another_source_flag_package_compiler_or_processor_is_built(tmp_path, cache, monkeypatch):
    build(tmp_path / "1", cache)
    for name, change in CHANGES.items():
        with monkeypatch.context() as patch:
            change(patch)
            assert build(tmp_path / name, cache).built.figures.origin == "cold", name
    assert build(tmp_path / "2", cache).built.figures.origin == "cached"


@pytest.mark.parametrize("trial", [*for_proof(TRIAL), NUMPY])
def test_nothing_is_kept_once_the_sources_were_edited_while_the_run_is_on(tmp_path, cache, monkeypatch, trial):
    """Its worker may have imported what is there now, and the digests are of what was there before."""
    with monkeypatch.context() as patch:
        for module in (kept_programs, kept_references):
            patch.setattr(module, "seen_now", lambda backend, packages: "edited")
        assert build(tmp_path / "1", cache, trial).failure is None
        assert not list(cache.path.glob(f"*/*/{ENTRY}"))
    again = build(tmp_path / "2", cache, trial)
    assert (again.built.figures.origin, again.figures.checked) == ("cold", "")
    assert {path.parts[-3] for path in cache.path.glob(f"*/*/{ENTRY}")} >= {trial.target.backend, "references"}


@pytest.mark.parametrize("seen_by", ["the process", *for_proof("the suite")])
def test_a_build_that_was_stopped_is_made_again_by_the_next_run(tmp_path, cache, monkeypatch, seen_by):
    """The time of the stop is in its seconds."""
    own = FakeBackend.build

    def goes_on(*arguments):
        os.kill(os.getpid(), signal.SIGCONT)
        return own(*arguments)

    with monkeypatch.context() as patch:
        if seen_by == "the process":
            patch.setattr(FakeBackend, "build", goes_on)
        else:
            finding = Finding(kind=FindingKind.TIME, detail="it was stopped", disbelieved=True)
            patch.setattr(build_and_check, "_stopped", lambda times, stopped_s: (finding,))
        stopped = build(tmp_path / "1", cache)
    assert "was stopped" in not_believed(stopped.built.findings)
    assert stopped.built.figures.origin == "cold"
    assert not entries(cache) if seen_by == "the suite" else len(entries(cache)) == 1, "a program of one step at most"
    resumed = build(tmp_path / "1", cache).built
    assert (resumed.figures.origin, resumed.figures.build_s, resumed.findings) == ("cached", None, ())
    again = build(tmp_path / "2", cache).built
    assert (again.figures.origin, again.findings) == ("cold", ())


@pytest.mark.proof
@pytest.mark.parametrize("method", [*for_proof("load"), "build"])
def test_what_a_framework_sets_in_its_process_makes_no_other_program(tmp_path, cache, monkeypatch, method):
    """XLA is told the folder of a process, which is another one in each, by a variable of its flags."""
    own = getattr(FakeBackend, method)

    def sets_a_variable(*arguments):
        os.environ["TF_XLA_FLAGS"] = f"--folder={os.getpid()}"
        return own(*arguments)

    monkeypatch.setattr(FakeBackend, method, sets_a_variable)
    origins = [build(tmp_path / name, cache).built.figures.origin for name in "ab"]
    assert origins == ["cold", "cached"]


@pytest.mark.proof
def test_a_program_of_another_version_is_built(tmp_path, cache):
    build(tmp_path / "1", cache)
    now = examine(TRIAL)
    other = replace(now, probe=replace(now.probe, versions={"rnnbench-fake": "2.0"}))
    assert build(tmp_path / "2", cache, other).built.figures.origin == "cold"


@pytest.mark.proof
def test_a_run_times_the_build_of_what_a_check_has_built_beside_other_work(tmp_path, cache):
    untimed = replace(cache, times=False)
    origins = [
        build(tmp_path / str(number), use).built.figures.origin
        for number, use in enumerate([untimed, untimed, cache, cache, untimed])
    ]
    assert origins == ["cold", "cached", "cold", "cached", "cached"]
    assert len(entries(cache)) == 2, "the program and its program of one step: the untimed ones are replaced"


@pytest.mark.proof
def test_what_check_builds_is_untimed(tmp_path, cache):
    plan = begin_run([TRIAL], Store(tmp_path / "results"))
    check_trials(plan, SilentObserver(), jobs=1, cache=cache)
    assert build(tmp_path / "1", replace(cache, times=False)).built.figures.origin == "cached"
    assert build(tmp_path / "2", cache).built.figures.origin == "cold"


@pytest.mark.proof
def test_another_trial_of_the_same_case_is_built(tmp_path, cache):
    build(tmp_path / "1", cache)
    for number, other in enumerate((replace(TRIAL, seed=1), make_trial(chunk=2), replace(TRIAL, threads=2)), 2):
        assert build(tmp_path / str(number), cache, other).built.figures.origin == "cold"


@pytest.mark.proof
def test_a_case_of_another_name_shares_its_programs(tmp_path, cache):
    build(tmp_path / "1", cache)
    assert build(tmp_path / "2", cache, replace(TRIAL, case="other")).built.figures.origin == "cached"


def test_a_damaged_entry_is_built_again_and_never_run(tmp_path, cache):
    build(tmp_path / "1", cache)
    for entry in entries(cache):
        for file in entry.rglob("fake-*"):
            file.write_text("damage")
    again = build(tmp_path / "2", cache)
    assert (again.failure, again.built.figures.origin) == (None, "cold")
    assert build(tmp_path / "3", cache).built.figures.origin == "cached"


def test_an_entry_with_the_facts_of_another_rnnbench_is_built_again(tmp_path, cache):
    build(tmp_path / "1", cache)
    for entry in entries(cache):
        content = json.loads(intact((entry / ENTRY).read_bytes()))
        (entry / ENTRY).write_bytes(text_with_digest(json.dumps({**content, "facts": {"build": {"origin": "warm"}}})))
    again = build(tmp_path / "2", cache)
    assert (again.failure, again.built.figures.origin) == (None, "cold")
    assert build(tmp_path / "3", cache).built.figures.origin == "cached"


@pytest.mark.proof
def test_what_a_run_uses_is_its_own_whatever_becomes_of_the_cache(tmp_path, cache):
    build(tmp_path / "1", cache)
    built = build(tmp_path / "2", cache).built
    Cache(cache).clear()
    again = build(tmp_path / "2", cache)
    assert again.built.figures == built.figures, "also the figures of the build, which is an earlier run's"
    assert again.failure is None


@pytest.mark.proof
def test_a_program_that_is_damaged_in_the_run_is_taken_from_the_cache_again(tmp_path, cache):
    build(tmp_path / "1", cache)
    for file in (tmp_path / "1/artifacts/programs").rglob("fake-*"):
        file.write_text("damage")
    again = build(tmp_path / "1", cache)
    assert (again.failure, again.built.figures.build_s is not None) == (None, True)


@pytest.mark.proof
def test_a_resumed_run_says_cold_of_what_it_built_itself(tmp_path, cache):
    first = build(tmp_path, cache)
    assert first.built.figures.origin == "cold"
    assert build(tmp_path, cache).built.figures == first.built.figures


def test_a_cache_that_cannot_be_written_is_a_cold_run(tmp_path):
    (tmp_path / "cache").write_text("a file")
    built = build(tmp_path / "1", CacheFolder(tmp_path / "cache", 1 << 20))
    assert (built.failure, built.built.figures.origin) == (None, "cold")


@pytest.mark.proof
@pytest.mark.parametrize("target", [*for_proof("numpy:eager"), "onnxruntime:onnx"])
def test_a_program_of_a_runtime_is_used_in_another_folder(tmp_path, cache, target):
    pytest.importorskip(target.partition(":")[0])
    first, second = (build(tmp_path / name, cache, make_trial(target)) for name in "ab")
    assert (first.failure, second.failure) == (None, None)
    assert (first.built.figures.origin, second.built.figures.origin) == ("cold", "cached")
    assert (second.artifact, second.findings) == (first.artifact, ())
    assert second.figures.tail_build_s == first.figures.tail_build_s


def checked_in(run, cache, trial=NUMPY):
    """The trial as a run checks it, and does not sample it."""
    context = with_cache(run, cache)
    (checked,) = build_and_check_all([(examine(trial), context)])
    return checked


@pytest.fixture(scope="module")
def cache_of_a_check(few_checks, tmp_path_factory):
    """The folder of the cache of a run that has checked NumPy's program."""
    folder = tmp_path_factory.mktemp("checked")
    assert checked_in(folder / "run", CacheFolder(folder / "cache", 1 << 20)).failure is None
    return folder / "cache"


@pytest.fixture
def checked(cache_of_a_check, cache):
    """A copy of that cache."""
    shutil.copytree(cache_of_a_check, cache.path)
    return cache


def ends(check, verdict, **figures):
    """Results of checks: this one, and all others passed."""
    passed = {other.name: CheckResult(verdict="pass") for other in conformance.CHECKS}
    return lambda *_: iter({**passed, check: CheckResult(verdict=verdict, figures=figures)}.items())


def changes_the_environment(*arguments):
    os.environ["RNNBENCH_CHANGED"] = "by a check"
    return conformance.run_checks(*arguments)


def test_the_checks_of_the_same_program_are_taken_from_the_run_that_made_them(tmp_path, cache):
    first, second, third = (checked_in(tmp_path / name, cache).figures for name in "abc")
    assert first.checked == ""
    assert second.checked[:4].isdigit()
    assert third == second, "what was taken is not kept anew"
    assert (second.results, second.tail_build_s) == (first.results, first.tail_build_s)


@pytest.mark.proof
def test_a_record_says_when_its_checks_were_made(tmp_path, checked):
    (record,) = run(tmp_path / "2", checked, [NUMPY])
    assert (record.outcome, record.checked[:4].isdigit(), record.findings) == ("ok", True, ())


@pytest.mark.proof
def test_a_run_that_rebuilds_and_a_check_make_every_check(tmp_path, checked):
    assert checked_in(tmp_path / "2", replace(checked, reads=False)).figures.checked == ""
    assert build(tmp_path / "3", checked, NUMPY).figures.checked == ""


@pytest.mark.parametrize(
    "change",
    [*for_proof(*CHANGES.values()), lambda patch: patch.setattr(trial_process, "suite_digest", lambda: "others")],
)
def test_what_decides_a_program_or_a_check_decides_whether_it_is_checked(tmp_path, checked, monkeypatch, change):
    change(monkeypatch)
    assert checked_in(tmp_path / "2", checked).figures.checked == ""


def test_a_longer_stream_is_checked(tmp_path, checked):
    assert checked_in(tmp_path / "2", checked, replace(NUMPY, steps=NUMPY.steps + 1)).figures.checked == ""


def test_the_programs_of_other_distributions_are_checked_in_each_run(runs):
    records, _ = runs
    assert [record.checked for record in records] == [""] * 4


def test_a_program_that_fails_a_check_is_checked_again_in_each_run(tmp_path, checked, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(trial_worker, "run_checks", ends("whole-sequence", "fail"))
        assert build(tmp_path / "2", checked, NUMPY).failure.outcome == "nonconforming"
    assert checked_in(tmp_path / "3", checked).figures.checked == ""


@pytest.mark.proof
def test_a_check_that_was_too_short_is_no_failure(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(trial_worker, "run_checks", ends("sessions", "too-short", done=9.0, planned=1000.0))
    first, second = (checked_in(tmp_path / name, cache).figures for name in "ab")
    assert (first.checked, second.checked[:2]) == ("", "20")
    assert second.results == first.results


@pytest.mark.proof
def test_checks_that_did_not_begin_are_made_again(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(trial_worker, "run_checks", ends("sessions", "too-short"))
    first, second = (checked_in(tmp_path / name, cache).figures for name in "ab")
    assert (first.checked, second.checked) == ("", "")


@pytest.mark.proof
def test_a_program_whose_timed_calls_are_wrong_is_checked_again_in_the_next_run(tmp_path, checked, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(PreparedProgram, "verify", lambda _: CheckResult(verdict="fail", detail="wrong"))
        (wrong,) = run(tmp_path / "2", checked, [NUMPY])
        assert (wrong.outcome, wrong.checked[:2]) == ("nonconforming", "20")
    assert checked_in(tmp_path / "3", checked).figures.checked == ""


@pytest.mark.proof
def test_checks_that_found_something_are_made_in_each_run(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(trial_worker, "run_checks", changes_the_environment)
    made = [checked_in(tmp_path / name, cache) for name in "ab"]
    assert [(one.figures.checked, len(one.findings)) for one in made] == [("", 1)] * 2


def test_damaged_results_of_checks_are_made_again(tmp_path, checked):
    for entry in checked.path.glob(f"checks/*/{ENTRY}"):
        entry.write_text(entry.read_text().replace("pass", "well"))
    assert checked_in(tmp_path / "2", checked).figures.checked == ""


def test_a_check_uses_the_cache(tmp_path, cache):
    build(tmp_path / "1", cache)
    kept = {entry: entry.stat().st_mtime_ns for entry in entries(cache)}
    plan = begin_run([TRIAL], Store(tmp_path))
    check_trials(plan, SilentObserver(), 1, cache=cache)
    assert [record.outcome for record in read_run(plan.folder).records] == ["ok"]
    assert {entry: entry.stat().st_mtime_ns for entry in entries(cache)} == kept, "nothing was built and kept again"


def in_child(work):
    """A fork that does some work. Adapters' processes are its own."""
    close_adapters()
    if (child := os.fork()) == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def test_a_run_that_is_killed_leaves_whole_entries(tmp_path, cache):
    """It is killed while its second trial hangs: the first one's program is kept, and is used."""
    killed = in_child(lambda: run(tmp_path, cache, [TRIAL, make_trial("fake:build-hangs")]))
    wait_until(lambda: bool(entries(cache)), "the first trial is built")
    os.kill(killed, signal.SIGKILL)
    psutil.Process(killed).wait(PATIENCE_S)
    assert build(tmp_path / "next", cache).built.figures.origin == "cached"


@pytest.mark.proof
def test_two_runs_at_a_time_share_one_cache(tmp_path, cache):
    children = [in_child(partial(build, tmp_path / name, cache)) for name in "ab"]
    assert [psutil.Process(child).wait(PATIENCE_S) for child in children] == [0, 0]
    assert build(tmp_path / "next", cache).built.figures.origin == "cached"
