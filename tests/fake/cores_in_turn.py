"""Test processes that run side by side hold the workers that they start to different cores.

A worker is held to the last cores of the machine, so that it runs alone. The workers of two test processes would share
them, and leave the others idle.
"""

from __future__ import annotations

import os

from rnnbench.worker import trial_process

SLOT = "RNNBENCH_TEST_SLOT"
"""The place of this process among those that run side by side, from 0: `make test` gives it."""
last_cores = trial_process.last_cores


def take_cores_in_turn() -> None:
    """From now on workers of this process get other cores than those of its neighbours."""
    slot = int(os.environ.get(SLOT, "0"))
    if slot:
        trial_process.last_cores = lambda count: cores_of_slot(count, slot)


def cores_of_slot(threads: int, slot: int) -> list[int]:
    """As many cores from the end, once as many as the slot says have been put in front."""
    cores = sorted(os.sched_getaffinity(0))
    turn = slot % len(cores)
    return sorted([*cores[-turn:], *cores[:-turn]][-threads:])
