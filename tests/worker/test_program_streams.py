"""Streams of one program: opened within limits, served in turn, and tested for what their calls led to."""

from __future__ import annotations

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestProgram, HonestSession

from rnnbench.backends import request_of
from rnnbench.conformance import ReferenceTrajectories
from rnnbench.worker import program_streams as module
from rnnbench.worker.program_streams import ProgramStreams

ROOM = 1 << 30


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return ReferenceTrajectories(make_trial(), tmp_path_factory.mktemp("references"))


def streams_of(reference, session=HonestSession):
    class Program(HonestProgram):
        def open(self):
            return session(self)

    request = request_of(reference.trial, reference.weights)
    return ProgramStreams(Program(request, "digest", True, lambda: pytest.fail("no ragged call is made")), reference)


def test_as_many_are_open_as_were_asked_for(reference):
    streams = streams_of(reference)
    assert [streams.open(count, ROOM) for count in (1, 4, 2)] == [1, 4, 4]


def test_no_more_are_opened_where_memory_is_spent(reference):
    assert streams_of(reference).open(4, -1 << 40) == 1


def test_no_more_are_opened_where_time_is_spent(reference, monkeypatch):
    monkeypatch.setattr(module, "OPENING_S", 0.0)
    assert streams_of(reference).open(4, ROOM) == 1


class WrongLater(HonestSession):
    """Right in every check, and wrong once many frames were served."""

    calls = 0

    def compute(self, x):
        self.calls += 1
        return super().compute(x) + (self.calls > 100)


@pytest.mark.parametrize(("session", "verdict"), [(HonestSession, "pass"), (WrongLater, "fail")])
def test_what_the_calls_of_streams_led_to_is_tested(reference, session, verdict):
    streams = streams_of(reference, session)
    streams.open(2, ROOM)
    served = streams.serve_requests(np.zeros(300), 60.0)
    assert served.done == served.due == 300
    assert streams.verify_and_close().verdict == verdict


class ChangesPlaces(HonestSession):
    """Between two frames, each stream takes the place of the next one."""

    def __init__(self, program):
        super().__init__(program)
        self.calls = 0
        program.__dict__.setdefault("sessions", []).append(self)

    def compute(self, x):
        first, *others = sessions = self._program.sessions
        self.calls += 1
        if self is first and self.calls > 50 and self._program.last is sessions[-1]:
            states = [session.state for session in sessions]
            for session, state in zip([*others, first], states, strict=True):
                session.state = state
        self._program.last = self
        return super().compute(x)


def test_streams_are_at_different_places_of_the_ring_so_none_can_be_taken_for_another(reference):
    streams = streams_of(reference, ChangesPlaces)
    streams.open(3, ROOM)
    for _ in range(30):
        streams.serve_frames(3, 1, 60.0)
    assert streams.verify_and_close().verdict == "fail"
