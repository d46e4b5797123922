"""Trials are built and loaded one after the other, while all other workers are stopped, and checked at once."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from threading import Barrier, Event

import psutil
import pytest
from harness_trials import context_in, make_trial
from hypothesis import given
from hypothesis import strategies as st
from waiting import PATIENCE_S, slow_waits, started_from_now, statuses, wait_until

from rnnbench.backends import Probe
from rnnbench.cases import Limits
from rnnbench.devices import Device
from rnnbench.pipeline import batches
from rnnbench.pipeline.batches import AHEAD, Batch, ahead_of, build_and_check_all, in_batches
from rnnbench.plan import examine
from rnnbench.stages import Examined

pytestmark = pytest.mark.usefixtures("few_checks")

GIB = 1 << 30
CORES = os.sched_getaffinity(0)


def examined_with(threads: int, memory: int) -> Examined:
    trial = replace(make_trial(limits=Limits(memory=memory)), threads=threads)
    return Examined(trial, None, None)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9))),
    st.integers(1, 4),
    st.integers(1, 8),
)
def test_a_batch_fits_on_the_machine_and_none_is_lost(wanted, cores, memory):
    trials = [(examined_with(threads, limit * GIB), None) for threads, limit in wanted]
    found = list(in_batches(trials, cores, memory * GIB))
    assert [pair for batch in found for pair in batch] == trials
    for batch in found:
        together = [examined.trial for examined, _ in batch]
        fits = sum(trial.threads for trial in together) <= cores
        fits &= sum(trial.limits.memory for trial in together) <= memory * GIB
        assert fits or len(batch) == 1


@pytest.mark.parametrize(("memory", "sizes"), [(4, [4, 1]), (1, [1] * 5), (80, [5]), (None, [5])])
def test_a_batch_has_no_more_workers_than_its_device_has_memory_for(memory: int | None, sizes: list[int]) -> None:
    """Each makes a context there. Trials on the processor count apart."""
    gpu = Probe((), devices={"cuda": Device("a GPU", driver="a driver", memory=memory and memory * GIB)})
    on_gpu = replace(examined_with(1, 1), probe=gpu)
    on_gpu = replace(on_gpu, trial=replace(on_gpu.trial, device="cuda"))
    assert [len(batch) for batch in in_batches([(on_gpu, None)] * 5, 16, 64 * GIB)] == sizes
    together = [(examined_with(1, 1), None), (on_gpu, None)]
    assert len(list(in_batches(together, 16, 64 * GIB))) == 1


def stopped_children() -> int:
    return statuses(psutil.Process().children(recursive=True)).count(psutil.STATUS_STOPPED)


@pytest.fixture
def two(tmp_path):
    """A batch of two trials, on one core each, and the stages that they began."""
    seen = []

    def on_stage(trial, stage):
        seen.append((trials.index(trial), stage))
        if seen[-1] == (1, "build"):
            wait_until(lambda: stopped_children() == 1, "the first worker is stopped")

    trials = [make_trial(chunk=chunk) for chunk in (2, 4)]
    context = replace(context_in(tmp_path), on_stage=on_stage)
    core = min(os.sched_getaffinity(0))
    with ExitStack() as open_workers:
        yield Batch([(examine(trial), context) for trial in trials], [core, core], open_workers), seen


def ignore() -> None:
    pass


def test_a_trial_is_built_and_loaded_while_the_others_have_not_begun_or_are_stopped(two):
    batch, seen = two
    assert [one.failure for one in batch.build_and_load()] == [None, None]
    assert seen == [
        *((0, "import"), (1, "import")),
        *((0, "build"), (0, "load")),
        *((1, "build"), (1, "load")),
    ]


def test_trials_are_checked_at_once(two, monkeypatch):
    batch, _ = two
    both, check = Barrier(2, timeout=PATIENCE_S), batches.check

    def check_with_the_other(*arguments, **how):
        both.wait()
        return check(*arguments, **how)

    monkeypatch.setattr(batches, "check", check_with_the_other)
    ended = []
    checked = list(batch.results(lambda one, _: one, lambda: ended.append(None)))
    assert [one.failure for one in checked] == [None, None]
    assert len(ended) == 2


@pytest.mark.proof
def test_a_worker_is_compared_and_closed_while_the_others_are_stopped(two):
    found = []

    def compare(one, worker):
        wait_until(lambda: stopped_children() == 1 - len(found), "the others are stopped")
        found.append(one.trial.strategy.chunk)
        return one

    assert [one.trial.strategy.chunk for one in two[0].results(compare, ignore)] == found == [2, 4]


def test_a_trial_that_fails_leaves_the_others_of_its_batch_alone_and_does_not_wait_for_them(tmp_path, monkeypatch):
    """The honest one is checked once all that fail are told."""
    routes = {"honest": None, "build-segfaults": "build", "load-segfaults": "load", "check-raises": "check"}
    context = context_in(tmp_path)
    trials = [examine(make_trial(f"fake:{route}")) for route in routes]
    core = min(os.sched_getaffinity(0))
    told, check, found = Event(), batches.check, []

    def check_last(loaded, *arguments, **how):
        assert loaded.trial.target.route != "honest" or told.wait(PATIENCE_S), "what failed was not told"
        return check(loaded, *arguments, **how)

    monkeypatch.setattr(batches, "check", check_last)
    with ExitStack() as open_workers:
        batch = Batch([(one, context) for one in trials], [core] * 4, open_workers)
        for one in batch.results(lambda one, _: one, ignore):
            found.append((one.trial.target.route, one.failure and one.failure.stage))
            if len(found) == 3:
                told.set()
    assert found == [*list(routes.items())[1:], ("honest", None)]
    seconds = context.wall_time.seconds()
    assert seconds["check"] <= seconds["total"]


@pytest.mark.proof
def test_every_trial_comes_once_from_many_batches(tmp_path):
    context = context_in(tmp_path)
    trials = [examine(make_trial(chunk=chunk)) for chunk in (1, 2, 3, 4, 5)]
    checked = list(build_and_check_all([(one, context) for one in trials]))
    assert sorted(one.trial.strategy.chunk for one in checked) == [1, 2, 3, 4, 5]


@pytest.mark.proof
def test_workers_of_further_batches_import_with_those_that_are_waited_for(monkeypatch, tmp_path):
    monkeypatch.setattr(batches, "free_memory", lambda: GIB)
    monkeypatch.setattr(batches.os, "sched_getaffinity", lambda _: {min(CORES)})
    seen, started = [], started_from_now()

    def on_stage(trial, stage):
        seen.append((trials.index(trial), stage))
        if stage == "build":
            wait_until(lambda: running(started()) == 1, "all other workers are stopped")

    trials = [make_trial(chunk=chunk, limits=Limits(memory=GIB // 4)) for chunk in (1, 2, 3, 4, 5)]
    context = replace(context_in(tmp_path), on_stage=on_stage)
    checked = list(build_and_check_all([(examine(trial), context) for trial in trials]))
    assert [one.failure for one in checked] == [None] * len(trials)
    assert seen[: 1 + AHEAD] == [(number, "import") for number in range(1 + AHEAD)]
    assert seen[1 + AHEAD] == (0, "build")


def running(processes):
    states = statuses(processes)
    return len(states) - states.count(psutil.STATUS_STOPPED)


def test_workers_are_there_before_their_turn_where_memory_holds_all_of_them(tmp_path):
    with ExitStack() as workers:
        three = [Batch([(examined_with(1, GIB), context_in(tmp_path))], [0], workers) for _ in range(3)]
    assert ahead_of(three, 0, 3 * GIB) == three[1:]
    assert ahead_of(three, 0, 2 * GIB) == three[1:2]
    assert ahead_of(three, 0, GIB) == []
    assert ahead_of(three, 2, 3 * GIB) == []


@pytest.mark.parametrize(
    ("device", "software", "held_to"),
    [("cpu", False, [(7,), (6,)]), ("cuda", False, [tuple(range(8))] * 2), ("vulkan", True, [(7,), (6,)])],
)
def test_a_worker_that_waits_for_a_device_is_held_to_no_core_of_its_own(
    monkeypatch, tmp_path, device, software, held_to
):
    asked = []

    class Started:
        def close(self) -> None: ...

    def start(examined, folders, log, cores):
        asked.append(tuple(cores))
        return Started()

    monkeypatch.setattr(batches, "start_trial_worker", start)
    one = examine(make_trial())
    probe = replace(one.probe, devices={device: Device("one", software=software)})
    pair = replace(one, trial=replace(one.trial, device=device), probe=probe), context_in(tmp_path)
    with ExitStack() as open_workers:
        Batch([pair, pair], list(range(8)), open_workers).start_all()
    assert asked == held_to


def test_a_batch_imports_while_a_started_worker_has_not_imported(monkeypatch, tmp_path):
    """Batches ahead start all of their workers only beside imports that are waited for."""

    class Started:
        def pause(self) -> None: ...
        def close(self) -> None: ...

    monkeypatch.setattr(batches, "start_trial_worker", lambda *_: Started())
    monkeypatch.setattr(batches, "import_framework", lambda *_: None)
    with ExitStack() as open_workers:
        batch = Batch([(examine(make_trial()), context_in(tmp_path))] * 2, [0, 1], open_workers)
        seen = [(batch.is_importing, batch.has_imported)]
        for step in (batch.start_next, batch.finish_imports, batch.start_all, batch.finish_imports):
            step()
            seen.append((batch.is_importing, batch.has_imported))
    assert seen == [(False, False), (True, False), (False, False), (True, False), (False, True)]


def test_no_trial_is_no_batch():
    assert list(build_and_check_all([])) == []


def interrupt() -> None:
    raise KeyboardInterrupt


def test_an_interrupt_ends_the_workers_of_a_batch(two):
    batch, _ = two
    with pytest.raises(KeyboardInterrupt):
        list(batch.results(lambda one, _: one, interrupt))
    wait_until(lambda: all(worker.has_ended for worker in batch._workers), "a worker of the batch is left")


def test_of_two_threads_that_end_a_worker_of_a_batch_one_alone_waits_for_it(tmp_path, monkeypatch):
    """One thread has its worker check for ever, as the other one's ends."""
    core = min(os.sched_getaffinity(0))
    pairs = [(examine(make_trial(f"fake:{route}")), context_in(tmp_path)) for route in ("check-hangs", "honest")]
    waited = slow_waits(monkeypatch)
    with ExitStack() as open_workers:
        batch = Batch(pairs, [core, core], open_workers)
        with pytest.raises(KeyboardInterrupt):
            list(batch.results(lambda one, _: one, interrupt))
    assert {worker.pid for worker in batch._workers} <= set(waited)
    assert len(waited) == len(set(waited))
