"""Work that is moved out of the timed call is found, and no honest program is accused of it."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestBound, HonestSession
from moved_work import HONEST, LIARS, LONG_S, Moved, Preparing, worker_with
from quick_tests import one_of_each_class

from rnnbench.measure import PATHS, Block, BlockPlan, put_clocks_back
from rnnbench.results import Finding
from rnnbench.worker import commands, trial_sampler

BLOCKS, CALLS, WAITING_CALLS = 4, 48, 4
WAIT_S = 0.01
STREAMS, FRAMES, REQUESTS, ROOM = 32, 4, 200, 1 << 30
"""Of a scenario: streams, frames of all of them, requests, and bytes for streams."""
now, sleep = time.perf_counter, time.sleep
PROCESSES, LOOKED_FOR_S = 12, 60.0
"""In how many processes at least, and for how long, a liar is looked for: a machine that is very busy may hide it."""


@pytest.fixture(autouse=True)
def counted_blocks(monkeypatch):
    monkeypatch.setattr(trial_sampler, "PATHS", {name: counted(path) for name, path in PATHS.items()})


@pytest.fixture(autouse=True)
def clocks():
    """The real ones, whatever a program puts in their place."""
    yield
    put_clocks_back()


def counted(path):
    """The path with blocks of so many calls, however long the machine takes for them."""

    def sample(timed, plan):
        seconds, waits = [], path.name in ("paced", "cold")
        begun = now()
        for _ in range(WAITING_CALLS if waits else CALLS):
            sleep(WAIT_S if waits else 0)
            before = now()
            timed.call()
            timed.sync()
            seconds.append(now() - before)
        return Block(0.0, 0, np.array(seconds), elapsed=now() - begun)

    return replace(path, sample=sample)


def sampled(moved, folder):
    """The findings of a worker that samples the program, and what its checks say."""
    given = dict(moved.trial)
    scenario = given.pop("scenario", "")
    paths = dict.fromkeys((given.pop("beside", moved.path), moved.path))
    trial = replace(make_trial(state=given.pop("state", "stitched")), **given)
    worker = worker_with(trial, moved.session, folder)
    worker.sampler._evictor = lambda: None
    checked = [worker.sampler.prepare(commands.Prepare(trial)).timed]
    for _ in range(BLOCKS):
        for path in paths:
            worker.sampler.sample_path(commands.SamplePath(trial, path, BlockPlan(0.0)))
    if scenario:
        worker.sampler.open_streams(commands.OpenStreams(trial, STREAMS, ROOM))
        if scenario == "streams":
            worker.sampler.serve_frames(commands.ServeFrames(trial, STREAMS, FRAMES, 1e-6))
        else:
            worker.sampler.serve_requests(commands.ServeRequests(trial, 1e6, REQUESTS, 0, LOOKED_FOR_S))
        checked.append(worker.sampler.close_streams(commands.CloseStreams(trial)))
    checked.append(worker.sampler.verify(commands.Verify(trial)).timed)
    return worker.findings.take(), [result.verdict for result in checked]


def sentence(moved: Moved) -> str:
    """That by which it is found. `make test` has one liar of each."""
    return moved.sentence


@pytest.mark.parametrize("liar", one_of_each_class(LIARS, sentence), ids=lambda moved: moved.name)
def test_a_program_that_moves_work_is_found_though_its_numbers_are_right(liar, tmp_path):
    findings: tuple[Finding, ...] = ()
    until = now() + LOOKED_FOR_S
    for number in count():
        more, verdicts = sampled(liar, tmp_path)
        findings += more
        assert set(verdicts) == {"pass"}
        is_found = any(liar.sentence in finding.detail for finding in findings)
        if is_found or (number >= PROCESSES and now() > until):
            break
    assert is_found, findings
    assert all(finding.kind == "time" and finding.disbelieved for finding in findings)


@pytest.mark.first(6)
@pytest.mark.parametrize("honest", HONEST, ids=lambda moved: moved.name)
def test_an_honest_program_is_not_accused(honest, tmp_path):
    findings, verdicts = sampled(honest, tmp_path)
    assert (findings, set(verdicts)) == ((), {"pass"})


class DoesNothingAfterAWait(HonestBound):
    """Once its calls are timed: the collector of garbage rests there."""

    waited_since, timed = 0.0, False

    def __call__(self):
        self.timed = self.timed or not gc.isenabled()
        waited, self.waited_since = now() - self.waited_since > WAIT_S / 2, now()
        if self.timed and waited:
            self._next()
        else:
            super().__call__()


class SkipsCallsAfterAWait(HonestSession):
    def _bind(self, ring):
        return DoesNothingAfterAWait(self, ring)


@pytest.mark.parametrize("path", ["paced", "cold"])
def test_calls_that_are_wrong_only_after_a_wait_are_found(path, tmp_path):
    _, verdicts = sampled(Moved(SkipsCallsAfterAWait, path=path), tmp_path)
    assert verdicts == ["pass", "fail"]


def test_work_while_opening_binding_and_closing_is_in_the_figures_of_the_load(tmp_path):
    trial = make_trial()
    loaded = worker_with(trial, Preparing, tmp_path).load(commands.Load(trial))
    assert loaded.open_s >= LONG_S
    assert loaded.bind_s >= 2 * LONG_S
    assert loaded.first_call_s >= 0.02
    assert loaded.close_s >= 3 * LONG_S


def test_there_are_programs_of_every_kind():
    assert {moved.path for moved in LIARS} == {moved.path for moved in HONEST} == set(PATHS)
    assert len(LIARS) >= 20
