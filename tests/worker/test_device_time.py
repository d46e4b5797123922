"""Where an adapter names the stream of its calls, the device's own events time them. The device is the processor here,
and its clock says what it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from harness_trials import make_trial
from honest_adapter import HonestBound, HonestSession
from moved_work import worker_with
from quick_tests import for_proof

from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.worker import commands, trial_sampler
from rnnbench.worker.prepared_program import (
    CHECKED_DEVICE_CALLS,
    DEVICE_CALLS,
    FIRST_CALLS,
    NO_STREAM,
    OTHER_CALL,
    OTHER_RESULT,
    OTHER_STREAM,
    DeviceCall,
    believed,
)
from rnnbench.worker.trial_worker import TrialWorker

CALL_S = 0.002
TRIAL = make_trial()


class RecordedClock:
    """A clock of a device. It makes the calls that it times, and keeps of which stream it was opened.

    `waits` is how long the host waits for its events, and `measures` what it says of a call, both in seconds.
    """

    def __init__(self, waits: float = CALL_S, measures: float = CALL_S) -> None:
        self.streams: list[int] = []
        self.calls = 0
        self.waits, self.measures = waits, measures

    def __call__(self, stream: int) -> Callable[[Callable[[], object]], float]:
        self.streams.append(stream)
        return self.seconds

    def seconds(self, call: Callable[[], object]) -> float:
        call()
        time.sleep(self.waits)
        self.calls += 1
        return self.measures if self.calls > 3 else 9.0


def time_on_device(worker: TrialWorker) -> commands.DeviceTime:
    return worker.sampler.time_on_device(commands.TimeOnDevice(TRIAL))


def prepared(
    monkeypatch: pytest.MonkeyPatch, folder: Path, open_clock: object, open_stream: object = None
) -> tuple[TrialWorker, commands.Prepared]:
    kind = replace(KINDS["cpu"], open_clock=open_clock, open_stream=open_stream)
    monkeypatch.setattr(trial_sampler, "KINDS", {"cpu": kind})
    worker = worker_with(TRIAL, HonestSession, folder)
    return worker, worker.sampler.prepare(commands.Prepare(TRIAL))


def test_a_call_in_a_stream_has_the_median_of_the_devices_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(HonestBound, "stream", 5, raising=False)
    clock = RecordedClock()
    worker, ready = prepared(monkeypatch, tmp_path, clock)
    assert (ready.timed.verdict, dict(ready.unmeasured)) == ("pass", {})
    assert time_on_device(worker).metrics == {"device_time_per_step": CALL_S / TRIAL.strategy.chunk}
    assert (clock.streams, clock.calls) == ([5], DEVICE_CALLS + CHECKED_DEVICE_CALLS)
    assert worker.sampler.verify(commands.Verify(TRIAL)).timed.verdict == "pass", "the stream goes on as it was left"


def test_an_adapter_without_a_stream_has_a_reason_and_no_such_metric(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = RecordedClock()
    worker, ready = prepared(monkeypatch, tmp_path, clock, lambda: 6)
    assert ready.unmeasured == {"device_time": NO_STREAM.format(TRIAL.target.backend)}
    assert time_on_device(worker) == commands.DeviceTime()
    assert clock.streams == []


def test_an_adapter_that_takes_a_stream_is_timed_in_one_of_the_suites(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its first calls there are made before: it may record or choose something in them."""
    taken = []

    @contextmanager
    def in_stream(bound: HonestBound, stream: int) -> Iterator[HonestBound]:
        taken.append(stream)
        yield bound
        taken.append("ended")

    monkeypatch.setattr(HonestBound, "in_stream", in_stream, raising=False)
    clock = RecordedClock()
    worker, ready = prepared(monkeypatch, tmp_path, clock, lambda: 6)
    assert (clock.streams, taken, dict(ready.unmeasured)) == ([6], [], {}), (
        "the program is loaded again only at the end"
    )
    assert time_on_device(worker).metrics == {"device_time_per_step": CALL_S / TRIAL.strategy.chunk}
    assert (taken, clock.calls) == ([6, "ended"], FIRST_CALLS + DEVICE_CALLS + CHECKED_DEVICE_CALLS)
    assert worker.sampler.verify(commands.Verify(TRIAL)).timed.verdict == "pass", "the stream goes on as it was left"


def test_a_stream_that_a_runtime_refuses_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(_bound: HonestBound, _stream: int) -> None:
        raise UnmeasuredError("The runtime does not take the stream.")

    monkeypatch.setattr(HonestBound, "in_stream", refuse, raising=False)
    worker, _ = prepared(monkeypatch, tmp_path, RecordedClock(), lambda: 6)
    refused = commands.DeviceTime(unmeasured={"device_time": "The runtime does not take the stream."})
    assert time_on_device(worker) == refused
    assert worker.sampler.verify(commands.Verify(TRIAL)).timed.verdict == "pass"


def test_a_clock_that_cannot_be_had_has_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none(_stream: int) -> None:
        raise UnmeasuredError("CUDA's cuEventCreate failed.")

    monkeypatch.setattr(HonestBound, "stream", 0, raising=False)
    worker, ready = prepared(monkeypatch, tmp_path, none)
    assert ready.unmeasured == {"device_time": "CUDA's cuEventCreate failed."}
    assert time_on_device(worker) == commands.DeviceTime()


def test_events_that_are_further_apart_than_the_host_saw_the_call_take_are_of_no_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(HonestBound, "stream", 5, raising=False)
    worker, _ = prepared(monkeypatch, tmp_path, RecordedClock(waits=0.0, measures=3600.0))
    assert time_on_device(worker) == commands.DeviceTime(unmeasured={"device_time": OTHER_CALL})
    assert worker.sampler.verify(commands.Verify(TRIAL)).timed.verdict == "pass"


def test_events_of_another_stream_than_the_works_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The work is queued in one stream, and the events come in another one while it still runs."""
    monkeypatch.setattr(HonestBound, "stream", 5, raising=False)
    worker, _ = prepared(monkeypatch, tmp_path, RecordedClock())
    monkeypatch.setattr(HonestBound, "sync", lambda _bound: time.sleep(4 * CALL_S))
    assert time_on_device(worker) == commands.DeviceTime(unmeasured={"device_time": OTHER_STREAM})


@pytest.mark.parametrize(("device", "host", "rest"), [(3e-6, 30e-6, 8e-6), (1e-3, 1.02e-3, 5e-6), (9e-6, 40e-6, 0.0)])
def test_events_of_the_call_are_believed(device: float, host: float, rest: float) -> None:
    """A short kernel, a long one, and a runtime that waits by itself. Single calls may be disturbed."""
    calls = [DeviceCall(device, host, rest)] * 5 + [DeviceCall(9.0, 1.0, 2.0)] * 2
    assert believed(calls) == device


@pytest.mark.parametrize("share", [0, *for_proof(1)])
def test_calls_in_the_suites_stream_that_do_less_than_others_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, share: int
) -> None:
    """Of its work there, a call does nothing, or leaves out every second time."""

    @contextmanager
    def in_stream(bound: HonestBound, _stream: int) -> Iterator[Callable[[], object]]:
        turns = cycle((bound.__call__,) * share + (bound._next,))
        yield lambda: next(turns)()

    monkeypatch.setattr(HonestBound, "in_stream", in_stream, raising=False)
    worker, _ = prepared(monkeypatch, tmp_path, RecordedClock(), lambda: 6)
    told = time_on_device(worker)
    assert not told.metrics
    assert told.unmeasured["device_time"].startswith(OTHER_RESULT.partition("{}")[0])
    assert worker.sampler.verify(commands.Verify(TRIAL)).timed.verdict == "pass", "the other calls are right"
