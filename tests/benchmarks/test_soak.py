"""2,000 trials that fail at random in one process leave nothing in it (half an hour; docs/reliability.md).

RNNBENCH_SOAK=N has N trials in all, 300 or more.
"""

from __future__ import annotations

import os
import random

import numpy as np
from soak import Left, soak_round

TRIALS = int(os.environ.get("RNNBENCH_SOAK", "2000"))
ROUND = 50
TIMED_EVERY = 8
"""One round in so many is a run, whose trials are sampled; the others are checks. A run takes ten times as long."""
SETTLED = 4
"""Rounds after which everything is imported and every cache has what it holds."""
LEAST = (SETTLED + 2) * ROUND
"""Trials by which memory is seen to grow or not."""
GROWTH_LIMIT = 4 << 10
"""Bytes that each trial may add. A record that was kept would add more; the allocator's noise is below it, since the
slope goes over more than a thousand trials."""


def test_two_thousand_trials_leave_nothing(tmp_path):
    assert TRIALS >= LEAST, f"RNNBENCH_SOAK is {TRIALS}; expected {LEAST} or more"
    draw, rounds, mistakes = random.Random(0), list[Left](), list[str]()
    for number in range(TRIALS // ROUND):
        left, wrong = soak_round(ROUND, draw, tmp_path, timed=number % TIMED_EVERY == 1)
        rounds.append(left)
        mistakes += wrong
    assert not mistakes, "\n".join(mistakes)
    resident = np.array([left.resident for left in rounds[SETTLED:]])
    slope = np.polyfit(np.arange(len(resident)), resident, 1)[0] / ROUND
    first, last = rounds[SETTLED], rounds[-1]
    print(
        f"\n{len(rounds) * ROUND:,} trials: {resident[0] / 2**20:.1f} MiB resident after {SETTLED + 1} rounds and "
        f"{resident[-1] / 2**20:.1f} at the end, {slope:+.0f} bytes a trial; descriptors {first.descriptors} to "
        f"{last.descriptors}, threads {first.threads} to {last.threads}, children {last.children}"
    )
    assert slope < GROWTH_LIMIT
    assert (last.descriptors, last.threads, last.children) == (first.descriptors, first.threads, 0)
