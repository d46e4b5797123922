"""Whatever an adapter or its program does, its trial fails with the right outcome, and the others of the run do not."""

from __future__ import annotations

import pytest
from harness_trials import make_trial, run_trials
from unasked import unasked_adapters

from rnnbench.backends import BackendError, find
from rnnbench.backends.base import Probe
from rnnbench.cases import Measure
from rnnbench.plan import examine, parse_targets
from rnnbench.worker import ForkedWorker, ForkingWorker, RunFolders, WorkerError, start_trial_worker
from rnnbench.worker.commands import Build, RunChecks

pytestmark = pytest.mark.usefixtures("few_checks")

WAYS = {
    "support-exits": (
        "crashed",
        "the adapter of 'fake' ended in support: asked the interpreter to exit: SystemExit: enough",
    ),
    "support-is-none": ("run-failed", "the adapter of 'fake' returned no valid answer from support: TypeError: None"),
    "support-is-odd": ("run-failed", "the adapter of 'fake' returned no valid answer from support: level: "),
    "build-exits": ("crashed", "asked the interpreter to exit: SystemExit: enough"),
    "build-ends-the-process": ("crashed", "exited with status 0"),
    "build-returns-none": (
        "run-failed",
        "the adapter of 'fake' returned no valid answer from build: TypeError: a None",
    ),
    "build-hoists-too-much": ("run-failed", "hoisted 5, which is not in 1..4"),
    "build-is-negative": ("run-failed", "its artifact has -1 bytes"),
    "build-is-of-no-form": ("run-failed", "its artifact is lowered 'vectorised 4'"),
    "build-is-of-unknown-origin": ("run-failed", "returned no valid answer from build: origin: Input should be"),
    "check-exits": ("crashed", "asked the interpreter to exit: SystemExit: enough"),
    "check-ends-the-process": ("crashed", "exited with status 0"),
    "check-closes-its-descriptors": ("crashed", "exited with status"),
    "sample-exits": ("crashed", "asked the interpreter to exit: SystemExit: enough"),
}

SPEEDS = "import-speeds-the-clock"


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    measure = Measure(budget=0.1, processes=1)
    routes = ["honest", SPEEDS, *WAYS]
    trials = {route: make_trial(f"fake:{route}", measure=measure) for route in routes}
    _, records = run_trials(list(trials.values()), tmp_path_factory.mktemp("results"))
    return {route: records[trial.id] for route, trial in trials.items()}


@pytest.mark.parametrize("route", WAYS)
def test_each_way_has_its_outcome_and_its_words(records, route):
    outcome, words = WAYS[route]
    assert (records[route].outcome, words in records[route].reason) == (outcome, True), records[route].reason


def test_a_clock_that_an_import_replaced_is_told_and_times_nothing(records):
    record = records[SPEEDS]
    assert (record.outcome, record.timing.load_s < 60, record.timing.latency["bound"].max < 60) == ("ok", True, True)
    assert [finding.detail for finding in record.findings] == [
        "the import of the framework left Python's clocks changed: time.perf_counter"
    ]


def test_the_other_trial_of_the_run_is_unharmed(records):
    assert records["honest"].outcome == "ok"


@pytest.mark.parametrize(
    "answer",
    [None, Probe(()), Probe(("a b",)), Probe(None), Probe(("a",), versions={"a": None}), Probe(("a",), lacking=3)],
    ids=str,
)
def test_a_probe_that_is_none_is_told_and_its_backend_has_trials_that_fail(monkeypatch, answer):
    with unasked_adapters():
        fake = find("fake")
        monkeypatch.setattr(fake._adapter, "probe", lambda: answer, raising=False)
        with pytest.raises(BackendError, match="the adapter of 'fake' returned no valid answer from probe"):
            fake.probe()
        assert [str(target) for target in parse_targets(["fake", "fake:honest"])] == ["fake:default", "fake:honest"]
        failure = examine(make_trial()).failure
    assert (failure.stage, failure.outcome) == ("probe", "run-failed")


def test_a_forked_child_that_exits_as_if_all_were_well_is_a_crash(tmp_path):
    trial = make_trial("fake:check-ends-the-process")
    folders = RunFolders.of_run(tmp_path)
    forked = ForkedWorker(ForkingWorker(start_trial_worker(examine(trial), folders, "log")))
    forked.ready()
    forked.ask(Build(trial), 60)
    with pytest.raises(WorkerError, match="exited with status 0") as raised:
        forked.ask(RunChecks(trial), 60)
    assert raised.value.outcome == "crashed"
    forked.close()
