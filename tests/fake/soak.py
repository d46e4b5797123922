"""Rounds of trials that fail at random, in one process of the suite, and what they leave in it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import psutil
from dying_runs import Death, die_together
from waiting import started_from_now
from ways_of_dying import WAYS, Kind

from rnnbench.measure.memory import resident_in_use

STAGES = ("build", "load", "check")
SAMPLED = ("prepare", "bound", "public", "verify")
OFTEN = tuple(way for way in WAYS if WAYS[way].kind not in (Kind.HANGS, Kind.NO_MEMORY))
SELDOM = tuple(way for way in WAYS if WAYS[way].kind in (Kind.HANGS, Kind.NO_MEMORY))
"""Ways that take seconds each: until a limit ends them."""
SELDOM_SHARE = 0.02


@dataclass(frozen=True)
class Left:
    """What this process has after a round."""

    resident: int
    descriptors: int
    threads: int
    children: int
    """Those that the round started."""


def soak_round(trials: int, draw: random.Random, folder: Path, *, timed: bool = False) -> tuple[Left, list[str]]:
    """One run of so many trials, or one check where it is not `timed`: what is left here, and what went wrong.

    That is a wrong outcome, a healthy trial that was harmed, or a file or process that was left.
    """
    dying: dict[Death, None] = {}
    started = started_from_now()
    while len(dying) < trials:
        ways = SELDOM if draw.random() < SELDOM_SHARE else OFTEN
        dying[draw.choice(SAMPLED if timed else STAGES), draw.choice(ways)] = None
    mistakes = die_together(list(dying), folder / "run", timed=timed).mistakes(dying)
    process = psutil.Process()
    return Left(resident_in_use(), process.num_fds(), process.num_threads(), len(started())), mistakes
