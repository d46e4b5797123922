"""Many streams of one program in one process. They are served in turn, and verified afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import psutil

from rnnbench.backends import Program
from rnnbench.conformance import RING, ReferenceTrajectories, TimedPath, worst
from rnnbench.measure import Served, frame_times, most_missed, serve
from rnnbench.results import CheckResult

OPENING_S = 30.0
"""Seconds after which a command opens no further stream: some runtimes compile their program for each session."""


class ProgramStreams:
    """Sessions of one program, each a stream of its own."""

    def __init__(self, program: Program, reference: ReferenceTrajectories) -> None:
        self._program = program
        self._reference = reference
        self._streams: list[TimedPath] = []

    def open(self, streams: int, room: int) -> int:
        """Open streams until `streams` are open, or `room` bytes or OPENING_S are spent. Returns how many are open."""
        process = psutil.Process()
        began, resident = time.perf_counter(), process.memory_info().rss
        while len(self._streams) < streams:
            stream = TimedPath(self._program.open(), self._reference)
            stream.start_at(len(self._streams) % RING)  # Neighbours in one state could be taken for each other.
            self._streams.append(stream)
            spent = process.memory_info().rss - resident > room or time.perf_counter() - began > OPENING_S
            if spent:
                break
        return len(self._streams)

    def serve_frames(self, streams: int, frames: int, period: float) -> Served:
        """Serve frames, one every `period` seconds. A frame is a call of each of the first `streams` streams, in turn.

        Ends early when so many frames have missed their deadline that the streams do not count as held.
        """
        served = self._streams[:streams]
        frame = _in_turn(served)
        result = serve(frame, frame_times(frames, period), deadline=period, most_missed=most_missed(frames))
        for stream in served:
            stream.called(result.calls)
        return result

    def serve_requests(self, arrivals: np.ndarray, longest: float) -> Served:
        """Serve requests in the order of arrival. Each is one call of the first stream.

        `arrivals` are seconds from the start [requests]. Ends early after `longest` seconds.
        """
        first = self._streams[:1]
        result = serve(_in_turn(first), arrivals, longest=longest)
        first[0].called(result.calls)
        return result

    def verify_and_close(self) -> CheckResult:
        """Verify the calls of all streams and close them. Returns the worst result."""
        verdicts = []
        for stream in self._streams:
            verdicts.append(stream.verify())
            stream.session.close()
        self._streams.clear()
        return worst(*verdicts)


def _in_turn(streams: Sequence[TimedPath]) -> Callable[[], None]:
    calls = [(stream.bound, stream.bound.sync) for stream in streams]

    def frame() -> None:
        for call, sync in calls:
            call()
            sync()

    return frame
