"""The process that probes the machine's roofs: it looks when it is told to, and sleeps otherwise."""

from __future__ import annotations

import os
import socket
import sys

from rnnbench.measure.roof import RoofProbe
from rnnbench.results.optional import MissingExtraError
from rnnbench.run.wire import Wire, WireClosedError


def main() -> None:
    """Serve the wire on the descriptor in argv until its other end closes."""
    wire = Wire(socket.socket(fileno=int(sys.argv[1])))
    hello = wire.receive()
    assert hello is not None, "without a timeout a wire waits"
    os.sched_setaffinity(0, hello["affinity"])
    try:
        probe = RoofProbe(hello["working_sets"], hello["dtype"], hello["threads"])
    except MissingExtraError as error:
        wire.send({"lacking": str(error)})
        return
    wire.send({})
    try:
        while wire.receive() is not None:
            roof = probe.measure()
            wire.send({"bandwidth": list(roof.bandwidth.items()), "rate": roof.rate})
    except WireClosedError:
        return


if __name__ == "__main__":
    main()
