"""A program that changes the clock is found by the suite's own; its figures are in no ranking, or it has failed."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from harness_trials import context_in, make_trial, run_trials

from rnnbench.conformance import CHECK_NAMES
from rnnbench.pipeline import build_and_check, build_and_check_trial, not_checked, not_sampled
from rnnbench.pipeline.ab import without_disbelieved
from rnnbench.plan import examine
from rnnbench.results import CheckResult, Finding, FindingKind, not_believed, rank, read_run, view_runs
from rnnbench.results.verdict import judge_pairs
from rnnbench.sampling import JudgedTrial, TrialSampling
from rnnbench.sampling.dispatch_floor import DispatchFloor
from rnnbench.stages import BuildFigures, CheckResults, ImportFigures, LoadFigures, WorkerState
from rnnbench.worker import Build, ComputeReference, Forget, Load, ReferenceFigures, RunChecks, remembered_build

pytestmark = pytest.mark.usefixtures("few_checks")

ROUTES = ("honest", "sample-slows-the-clock", "sample-turns-the-clock-back")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder, _ = run_trials([make_trial(f"fake:{route}") for route in ROUTES], tmp_path_factory.mktemp("run"))
    return read_run(folder)


def test_a_clock_that_is_slow_makes_the_figures_not_believed(run):
    honest, slow, _ = run.records
    assert (honest.outcome, honest.findings) == ("ok", ())
    assert slow.outcome == "ok"
    assert "replaced time.perf_counter_ns" in slow.not_believed


def test_a_clock_that_goes_back_is_a_failure_of_its_trial(run):
    back = run.records[2]
    assert (back.outcome, back.stage) == ("run-failed", "sample")
    assert back.reason.startswith("times that cannot be: ")


def test_what_is_not_believed_is_in_no_ranking(run):
    (ranking,) = rank(view_runs([run]).entries)
    assert [place.entry.record.route for place in ranking.places] == ["honest"]


def test_opening_binding_and_closing_are_in_the_record(run):
    timing = run.records[0].timing
    assert min(timing.open_s, timing.bind_s, timing.close_s) > 0


class LyingWorker:
    """One whose clock is an hour ahead of the suite's, in its build or in its load."""

    age_s = 1.0
    stopped_s = 0.0

    def __init__(self, build_s, bind_s):
        self.built = BuildFigures("cold", build_s=build_s, import_s=0.0)
        self.loaded = LoadFigures(0.0, 0.0, 0.0, 0, 0, artifact=None, bind_s=bind_s)

    def ready(self, memory=None):
        return ImportFigures(0, 0, 0.0)

    def ask(self, command, timeout, memory=None):
        return self.built if isinstance(command, Build) else self.loaded

    def take_findings(self):
        return ()

    def close(self):
        """It is no process."""


@pytest.mark.parametrize(
    ("stage", "build_s", "bind_s"),
    [("build", 3600.0, 0.0), ("build", -1.0, 0.0), ("load", 0.0, 3600.0), ("load", 0.0, float("nan"))],
)
def test_a_build_or_load_that_took_longer_than_the_suite_waited_is_a_failure(stage, build_s, bind_s, tmp_path):
    worker = LyingWorker(build_s, bind_s)
    failure = build_and_check_trial(examine(make_trial()), worker, context_in(tmp_path)).failure
    assert (failure.stage, failure.outcome) == (stage, "run-failed")
    assert failure.reason.startswith("times that cannot be: ")


class LyingChecker(LyingWorker):
    """One that answers the checks with these results, and says that its references took so long."""

    def __init__(self, names, reference_s):
        super().__init__(0.0, 0.0)
        results = {name: CheckResult(verdict="pass") for name in names}
        self.checked = CheckResults(results, None, reference_s, WorkerState(1, (0,)))

    def ask(self, command, timeout, memory=None):
        answers = {ComputeReference: ReferenceFigures(0.0), RunChecks: self.checked}
        return answers.get(type(command)) or super().ask(command, timeout, memory)


@pytest.mark.parametrize(
    ("names", "reference_s", "reason"),
    [
        (CHECK_NAMES, 0.0, None),
        ((), 0.0, "its worker sent no result of the check values"),
        (CHECK_NAMES[:1], 0.0, "its worker sent no result of the check "),
        (CHECK_NAMES, 1e300, "times that cannot be: its worker says that its references took 1e+300 s"),
    ],
    ids=["all", "none", "one", "a reference that took for ever"],
)
def test_results_that_lack_a_check_are_no_pass_and_no_time_of_the_run(names, reference_s, reason, tmp_path):
    context = context_in(tmp_path)
    checked = build_and_check_trial(examine(make_trial()), LyingChecker(names, reference_s), context)
    assert ((checked.failure and checked.failure.reason) or "").startswith(reason or "")
    assert (checked.failure is None) == (reason is None)
    assert context.wall_time.seconds().get("reference", 0.0) < 1e9


class StoppedWorker(LyingChecker):
    """One whose build takes so long, while the suite is stopped for an hour. Then it answers at once."""

    def __init__(self, build_s, clock):
        super().__init__(CHECK_NAMES, 0.0)
        self.built = BuildFigures("cold", build_s=build_s, import_s=0.0)
        self.asked, self._clock = {}, clock

    def ask(self, command, timeout, memory=None):
        self.asked[type(command)] = timeout
        self.stopped_s = 3600.0 if isinstance(command, Build) else 0.0
        self._clock[0] += self.stopped_s
        return super().ask(command, timeout, memory)


@pytest.mark.parametrize(("build_s", "believed"), [(3600.0, False), (0.0, True)])
def test_a_build_in_which_the_suite_was_stopped_has_its_whole_limit_left_and_is_believed_if_it_was_short(
    build_s, believed, tmp_path, monkeypatch
):
    """Of a container that was paused, the worker was stopped too. Ctrl-Z stops the suite alone."""
    clock = [0.0]
    monkeypatch.setattr(build_and_check, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + clock[0]))
    worker, trial, context = StoppedWorker(build_s, clock), make_trial(), context_in(tmp_path)
    checked = build_and_check_trial(examine(trial), worker, context)
    assert checked.failure is None
    assert ("the suite was stopped for 3.6e+03 s" in not_believed(checked.findings)) == (not believed)
    assert worker.asked[Load] > trial.limits.trial / 2, "the limit of the load"
    kept = remembered_build(context.folders.artifacts, trial)
    assert (kept is None, Forget in worker.asked) == (not believed, not believed), "of no later run is it the time"


def test_a_build_whose_process_was_stopped_alone_is_not_believed_and_its_time_not_kept(tmp_path):
    worker, trial, context = LyingChecker(CHECK_NAMES, 0.0), make_trial(), context_in(tmp_path)
    worker.built = BuildFigures("cold", build_s=0.0, import_s=0.0, stopped=True)
    checked = build_and_check_trial(examine(trial), worker, context)
    assert "was stopped from outside" in not_believed(checked.findings)
    assert remembered_build(context.folders.artifacts, trial) is None


def test_a_dispatch_floor_that_is_not_believed_has_no_figure():
    examined = examine(make_trial())
    floor = DispatchFloor([examined])
    (smallest,) = floor.for_trials([TrialSampling(examined)])
    smallest.note_findings([Finding(kind=FindingKind.TIME, detail="a thread did its work", disbelieved=True)])
    assert floor.samples_of(examined).unmeasured == "not believed: a thread did its work"


@pytest.mark.parametrize("side", [0, 1])
def test_a_comparison_of_two_sides_gives_no_verdict_on_what_is_not_believed(side):
    sides = [not_sampled(not_checked(examine(make_trial())))] * 2
    judged = JudgedTrial(
        tuple(sides), {"bound": judge_pairs([1.0, 1.0, 1.0])}, {"bound": [1.0]}, {"bound": [0.0]}, 1.0, {}
    )
    assert without_disbelieved(judged) == judged
    doubtful = Finding(kind=FindingKind.TIME, detail="a thread did its work", disbelieved=True)
    sides[side] = replace(sides[side], findings=(doubtful,))
    assert without_disbelieved(replace(judged, sides=tuple(sides))).judgements == {}
