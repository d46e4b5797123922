"""A load of varying strength on the machine's first core: some seconds at each of many duty cycles, from none to full.

Half of its spells copy memory that no cache holds, which slows the other cores' reads too; the others reckon. Run as a
script with a seed; it goes on until it is killed.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import time

import numpy as np

PERIOD_S = 0.02
"""A duty cycle of 30 % is 6 ms of work and 14 ms of sleep."""
COPIED_BYTES = 64 << 20
SPELL_S = (0.5, 4.0)
_PR_SET_PDEATHSIG = 1


def main(seed: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    chance = random.Random(seed)
    source = np.ones(COPIED_BYTES // 8)
    target = np.zeros_like(source)
    piece = len(source) // 64
    while True:
        duty, copies, until = chance.random(), chance.random() < 0.5, time.monotonic() + chance.uniform(*SPELL_S)
        at = 0
        while time.monotonic() < until:
            busy_until = time.monotonic() + duty * PERIOD_S
            while time.monotonic() < busy_until:
                if copies:
                    target[at : at + piece] = source[at : at + piece]
                    at = (at + piece) % len(source)
                else:
                    sum(range(2_000))
            time.sleep((1 - duty) * PERIOD_S)


if __name__ == "__main__":
    main(int(sys.argv[1]))
