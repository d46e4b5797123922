"""The worker that measures the device's roof on command."""

from __future__ import annotations

import os
from contextlib import suppress

from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.sampling.roof import ReadRoof, RoofReading, StartRoof
from rnnbench.worker import (
    ChannelClosedError,
    Done,
    Failed,
    answer,
    die_with_parent,
    open_channel,
    receive_command,
    serve,
)


def main() -> None:
    """Carry out the commands of the channel until its other end closes."""
    die_with_parent()
    channel = open_channel()
    start = receive_command(channel, {StartRoof: None})
    assert isinstance(start, StartRoof), "the first command says what to measure"
    os.sched_setaffinity(0, start.affinity)
    make = KINDS[start.device].measure_roof
    assert make is not None, "it is not started where the kind of device has no roof"
    try:
        probe = make(start.working_sets, start.dtype, start.threads)
    except UnmeasuredError as error:
        answer(channel, Failed("unavailable", str(error)))
        return

    def read(command: ReadRoof) -> RoofReading | Failed:
        try:
            return RoofReading.of(probe.measure())
        except UnmeasuredError as error:
            return Failed("unavailable", str(error))

    answer(channel, Done())
    with suppress(ChannelClosedError):
        serve(channel, {ReadRoof: read})


if __name__ == "__main__":
    main()
