"""The worker that measures the machine's roof: it does so when it is asked, and sleeps otherwise."""

from __future__ import annotations

import os
from contextlib import suppress

from rnnbench.measure import RoofProbe
from rnnbench.optional import MissingExtraError
from rnnbench.sampling.roof import ReadRoof, RoofReading, StartRoof
from rnnbench.worker import (
    ChannelClosedError,
    Done,
    Failed,
    die_with_parent,
    encode_reply,
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
    try:
        probe = RoofProbe(start.working_sets, start.dtype, start.threads)
    except MissingExtraError as error:
        channel.send(encode_reply(Failed("unavailable", str(error))))
        return

    def read(command: ReadRoof) -> RoofReading:
        roof = probe.measure()
        return RoofReading(tuple(roof.bandwidth.items()), roof.rate)

    channel.send(encode_reply(Done()))
    with suppress(ChannelClosedError):
        serve(channel, {ReadRoof: read})


if __name__ == "__main__":
    main()
