"""A trial's worker, asked command by command: every latency path is sampled in one way."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import rnnbench_fake
from harness_trials import make_trial
from honest_adapter import HonestBound, HonestSession
from moved_work import worker_with

from rnnbench.backends import sources_digest
from rnnbench.cases import Measure
from rnnbench.conformance import ReferenceTrajectories
from rnnbench.measure import memory, threads
from rnnbench.measure.metrics import METRICS
from rnnbench.measure.paths import PATHS, BlockPlan
from rnnbench.plan import examine
from rnnbench.worker import RunFolders, WorkerError, start_trial_worker, trial_worker
from rnnbench.worker.commands import (
    Build,
    CloseStreams,
    ComputeReference,
    Load,
    OpenStreams,
    Prepare,
    RunChecks,
    SamplePath,
    SampleStateCopy,
    ServeFrames,
    ServeRequests,
    Start,
    Verify,
)
from rnnbench.worker.process_family import bind_threads
from rnnbench.worker.program_streams import ProgramStreams
from rnnbench.worker.trial_programs import folder_of
from rnnbench.worker.trial_sampler import LOST_STREAMS
from rnnbench.worker.trial_worker import TrialWorker

pytestmark = pytest.mark.usefixtures("forked_workers")
LIMIT_S = 60.0
TRIAL = make_trial(measure=Measure(settings={"cold": 1.0, "period": 0.001}))


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """A worker in which the trial is ready to be sampled."""
    folders = RunFolders.of_run(tmp_path_factory.mktemp("run"))
    worker = start_trial_worker(examine(TRIAL), folders, "worker.log")
    worker.ready()
    worker.ask(Build(TRIAL), LIMIT_S)
    assert worker.ask(Prepare(TRIAL), LIMIT_S).timed.verdict == "pass"
    yield worker
    worker.close()


def sample(worker, path, **plan):
    plan = BlockPlan(0.01, setting=PATHS[path].value(TRIAL.measure.settings), **plan)
    return worker.ask(SamplePath(TRIAL, path, plan), LIMIT_S)


@pytest.mark.parametrize("path", PATHS)
def test_every_latency_path_gives_a_block_of_calls(worker, path):
    block = sample(worker, path)
    assert len(block.seconds) > 0
    assert (block.seconds > 0).all()
    assert block.elapsed > 0


def test_a_plan_says_how_many_calls_are_timed_as_one_and_whether_the_first_are_left_out(worker):
    block = sample(worker, "bound", calls_per_sample=4, rewarm=False)
    assert (block.calls_per_sample, block.warm_calls) == (4, 0)
    assert sample(worker, "public").warm_calls > 0


def test_the_state_s_round_trip_is_sampled_too(worker):
    block = worker.ask(SampleStateCopy(TRIAL, 0.004), LIMIT_S)
    assert len(block.seconds) > 0


def test_what_follows_sampling_has_the_growth_of_the_paths_that_watch_memory_and_no_warm_up(tmp_path):
    worker = start_trial_worker(examine(TRIAL), RunFolders.of_run(tmp_path), "worker.log")
    worker.ready()
    worker.ask(Build(TRIAL), LIMIT_S)
    worker.ask(Prepare(TRIAL), LIMIT_S)
    sample(worker, "bound", rewarm=False)
    blocks = [sample(worker, path) for path in ("bound", "cold", "bound", "paced", "public")]
    verified = worker.ask(Verify(TRIAL), LIMIT_S)
    worker.close()
    assert verified.timed.verdict == "pass"
    assert {path: [calls for calls, _ in steps] for path, steps in verified.growth.items()} == {
        "bound": [blocks[0].calls, blocks[2].calls],
        "public": [blocks[4].calls],
    }
    assert verified.busy_threads in {1, None}, "None: the kernel counts in ticks, and none fell into the calls"
    assert verified.state.threads >= 1
    assert len(verified.state.affinity) == 1
    assert verified.metrics.keys() == {name for name, metric in METRICS.items() if metric.when == "sampled"}


def test_the_memory_of_streams_is_no_growth_of_the_calls_before_them(tmp_path, monkeypatch):
    process = SimpleNamespace(resident=1 << 30)
    monkeypatch.setattr(memory, "resident", lambda: process.resident)

    def open_streams(streams, count, room):
        process.resident += 64 << 20
        return count

    monkeypatch.setattr(ProgramStreams, "open", open_streams)
    trial = make_trial()
    sampler = worker_with(trial, HonestSession, tmp_path).sampler
    sampler.prepare(Prepare(trial))
    block = sampler.sample_path(SamplePath(trial, "bound", BlockPlan(0.001)))
    sampler.open_streams(OpenStreams(trial, 1, 0))
    assert sampler.verify(Verify(trial)).growth["bound"] == ((block.calls, 0),)


def test_streams_that_ended_with_an_earlier_process_are_told_as_such(tmp_path):
    """That process was killed while it was stopped. This one has none of its streams."""
    trial = make_trial()
    sampler = worker_with(trial, HonestSession, tmp_path).sampler
    frames, requests = ServeFrames(trial, 1, 1, 0.01), ServeRequests(trial, 100.0, 1, 0, 1.0)
    assert sampler.serve_frames(frames) == sampler.serve_requests(requests) == LOST_STREAMS
    assert sampler.close_streams(CloseStreams(trial)) == LOST_STREAMS


def test_busy_threads_are_those_that_work_in_bound_calls(tmp_path, monkeypatch):
    """Two do. A third one works in public calls. The kernel's account of their time is the test's own."""
    used = {1: 0.0, 2: 0.0, 3: 0.0}

    class Bound(HonestBound):
        def __call__(self):
            super().__call__()
            used[1] += 1.0
            used[2] += 1.0

    class Session(HonestSession):
        def _advance(self, x):
            used[3] += 100.0
            return super()._advance(x)

        def _bind(self, ring):
            return Bound(self, ring)

    monkeypatch.setattr(threads, "cpu_seconds", lambda: dict(used))
    trial = make_trial()
    sampler = worker_with(trial, Session, tmp_path).sampler
    sampler.prepare(Prepare(trial))
    for path in ("bound", "public"):
        sampler.sample_path(SamplePath(trial, path, BlockPlan(0.001)))
    assert sampler.verify(Verify(trial)).busy_threads == 2


def test_building_loading_and_checking_give_their_figures(tmp_path):
    worker = start_trial_worker(examine(TRIAL), RunFolders.of_run(tmp_path), "worker.log")
    worker.ready()
    built = worker.ask(Build(TRIAL), LIMIT_S)
    assert built.origin == "cold"
    assert built.build_s >= 0
    assert built.peak > 0
    assert worker.ask(Build(TRIAL), LIMIT_S).origin == "cached"
    loaded = worker.ask(Load(TRIAL), LIMIT_S)
    assert loaded.load_s >= 0
    assert loaded.first_call_s > 0
    assert loaded.steady > 0
    assert loaded.artifact.lowered == "looped 1"
    assert loaded.metrics.keys() == {name for name, metric in METRICS.items() if metric.when == "loaded"}
    checked = worker.ask(RunChecks(TRIAL), LIMIT_S)
    assert {"values", "chunks", "bound"} <= set(checked.results)
    assert checked.reference_s > 0
    worker.close()


def test_a_worker_of_another_interpreter_reads_the_sources_that_its_programs_depend_on(tmp_path):
    folders = [
        TrialWorker(Start("fake", tmp_path / "cache", tmp_path / "references", (0,), sources))._programs._cache.name
        for sources in ("", "0" * 64)
    ]
    assert folders == [folder_of("fake", sources) for sources in (sources_digest("fake"), "0" * 64)]


def test_a_reference_of_nan_ends_the_trial_before_its_checks(tmp_path, monkeypatch):
    monkeypatch.setattr(ReferenceTrajectories, "not_finite", lambda reference: "the weight W is NaN")
    worker = start_trial_worker(examine(TRIAL), RunFolders.of_run(tmp_path), "worker.log")
    worker.ready()
    with pytest.raises(WorkerError, match="the weight W is NaN") as raised:
        worker.ask(ComputeReference(TRIAL), LIMIT_S)
    assert raised.value.outcome == "run-failed"
    worker.close()


def test_a_build_has_the_cores_of_the_suite_and_no_others(tmp_path, monkeypatch):
    """The user may have held the suite to some cores, and its worker is bound to fewer."""
    own = os.sched_getaffinity(0)
    told = tmp_path / "cores"
    monkeypatch.setattr(trial_worker, "STARTED_ON", {min(own)})
    monkeypatch.setattr(rnnbench_fake, "_compile", lambda route: told.write_text(str(os.sched_getaffinity(0))))
    trial = make_trial()
    built = worker_with(trial, HonestSession, tmp_path).build(Build(trial))
    assert (built.origin, told.read_text()) == ("cold", str({min(own)}))
    assert os.sched_getaffinity(0) == own


def test_a_thread_of_an_import_that_ends_while_threads_are_held_to_their_cores_is_passed_over(monkeypatch):
    held = []

    def hold(thread, cores):
        if thread == 2:
            raise ProcessLookupError
        held.append((thread, cores))

    monkeypatch.setattr(os, "listdir", lambda folder: ["1", "2", "3"])
    monkeypatch.setattr(os, "sched_setaffinity", hold)
    bind_threads(os.getpid(), (1,))
    assert held == [(1, (1,)), (3, (1,))]
