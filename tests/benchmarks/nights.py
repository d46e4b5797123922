"""Nights made from kept pools of real processes (`verdict_pool`): what change points are proved on.

A night of a trial is the median of `PROCESSES` processes of a pool, one session of each, drawn anew for each night and
trial; with `together`, of processes that followed each other, so that a bad minute of the pool is a bad night. Where a
step is planted, the nights after it come from the pool's sessions with that slowdown planted into them, and the nights
before it from the sessions beside them. What pools of minutes cannot have is added: a machine that drifts and moves,
nights on which all is slower, single bad nights, and slow drift of a trial.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import verdict_pool

from rnnbench.history.entry import RunEntry
from rnnbench.history.measures import MEASURES
from rnnbench.history.series import Trials

POOLS = ("quiet", "busy")
"""Those whose processes are of one level, but for their scatter. In the pool `xeon` processes differ by 4 %, as of a
machine that moves every minute: pairs do not see that, and nights do."""
FIRST = datetime.date(2026, 1, 1)
"""The day of night 0."""
PROCESSES = 3
BACKENDS = 10
"""Trial t is of backend t % BACKENDS. Backend 0 is the anchors': pinned, and without steps."""
NIGHT_SCATTER = (0.002, 0.006)
"""Of a trial from night to night, beyond its processes': the layout of each night's build."""
WALK, WALK_KEPT = 0.006, 0.7
"""The machine's own walk: its deviation, and the share kept from one night to the next."""
SENSITIVITY = 0.15
"""By how much trials differ in what a move of the machine does to them, as a fraction of the move."""
SHIFTS, SHIFT_SIZES, SHIFT_MARGIN = 3, (0.02, 0.08), 20
"""Moves of the machine a year, their sizes, and nights at either end without one."""
BAD_NIGHTS, BAD_NIGHT, UNEVEN = 7, (0.05, 0.2), 0.4
"""Nights a year on which everything is slower, by how much, and how unevenly."""
OUTLIERS, OUTLIER = 0.01, (0.03, 0.15)
"""Share of a trial's nights that are slower by themselves, and by how much."""
DRIFT = 0.01
"""Drift of a trial over a year: its deviation over trials."""


@dataclass(frozen=True)
class Planted:
    """A step that is planted: `percent` slower from this night on, or faster where it is negative."""

    trial: int
    night: int
    percent: int


@dataclass(frozen=True)
class Nights:
    """`values` [trials, nights]: logarithms of seconds."""

    values: np.ndarray
    shifts: tuple[tuple[int, float], ...]
    """Nights on which the machine moved, and by how much (a logarithm)."""

    @property
    def backends(self) -> np.ndarray:
        return np.arange(len(self.values)) % BACKENDS


@cache
def sessions(pool: str, percent: int) -> np.ndarray:
    """[sides, pairs]: logarithms of each session's median, over the median of the sessions without the slowdown."""
    kept = verdict_pool.read(verdict_pool.DATA / f"{pool}.npz")
    medians = np.log(np.median(kept.medians(percent), axis=1)).T
    return medians - np.median(medians[0])


def make(
    trials: int,
    nights: int,
    seed: int,
    planted: Sequence[Planted] = (),
    *,
    machine: bool = True,
    together: bool = False,
) -> Nights:
    chance = np.random.default_rng(seed)
    steps = {step.trial: step for step in planted}
    values = np.stack([_trial(nights, steps.get(trial), chance, together=together) for trial in range(trials)])
    values += chance.normal(0, 1, (trials, nights)) * _log_uniform(NIGHT_SCATTER, (trials, 1), chance)
    values += chance.normal(0, DRIFT, (trials, 1)) * np.linspace(0, nights / 365, nights)
    single = chance.random((trials, nights)) < OUTLIERS
    values += single * chance.uniform(*OUTLIER, (trials, nights))
    shifts = _machine(values, chance) if machine else ()
    return Nights(values, shifts)


def _trial(nights: int, step: Planted | None, chance: np.random.Generator, *, together: bool) -> np.ndarray:
    pool = POOLS[int(chance.integers(len(POOLS)))]
    base, slow = sessions(pool, abs(step.percent) if step else 0)
    old, new = (slow, base) if step and step.percent < 0 else (base, slow)
    first = chance.integers(len(base) - PROCESSES + 1, size=nights)
    drawn = first[:, None] + np.arange(PROCESSES) if together else chance.integers(len(base), size=(nights, PROCESSES))
    before = np.arange(nights) < (step.night if step else nights)
    return np.where(before, np.median(old[drawn], axis=1), np.median(new[drawn], axis=1))


def _machine(values: np.ndarray, chance: np.random.Generator) -> tuple[tuple[int, float], ...]:
    """Adds what the machine does to all trials at once; returns its shifts."""
    trials, nights = values.shape
    walk = np.zeros(nights)
    for night in range(1, nights):
        walk[night] = WALK_KEPT * walk[night - 1] + chance.normal(0, WALK * np.sqrt(1 - WALK_KEPT**2))
    at = np.sort(chance.choice(np.arange(SHIFT_MARGIN, nights - SHIFT_MARGIN), SHIFTS, replace=False))
    shifts = tuple((int(n), float(chance.choice([-1, 1]) * chance.uniform(*SHIFT_SIZES))) for n in at)
    for night, size in shifts:
        walk[night:] += size
    values += chance.normal(1, SENSITIVITY, (trials, 1)) * walk
    for night in chance.choice(nights, round(BAD_NIGHTS * nights / 365), replace=False):
        values[:, night] += chance.uniform(*BAD_NIGHT) * np.clip(chance.normal(1, UNEVEN, trials), 0, None)
    return shifts


def trials_of(made: Nights) -> Trials:
    """The nights as a history has them. All programs but the anchors' change each night."""
    shape = made.values.shape
    entries = tuple(_entry(night) for night in range(shape[1]))
    anchors = made.backends == 0
    nightly = np.broadcast_to(np.arange(1, shape[1] + 1, dtype=np.uint64), shape)
    program = np.where(anchors[:, None], np.uint64(1), nightly)
    empty = {name: np.full(shape, np.nan) for name in MEASURES}
    return Trials(
        entries,
        tuple(str(trial) for trial in range(shape[0])),
        tuple(str(backend) for backend in made.backends),
        anchors,
        {**empty, "bound": made.values},
        program,
        np.where(anchors[:, None], "pinned", program.astype(str)).astype(object),
    )


def started(night: int) -> str:
    """When it began, in UTC."""
    return f"{FIRST + datetime.timedelta(days=night)}T02:00:00"


def night_of(time: str) -> int:
    """The night that began at this time."""
    return (datetime.datetime.fromisoformat(time).date() - FIRST).days


def _entry(night: int) -> RunEntry:
    return RunEntry(
        run_id=str(night),
        run=str(night),
        started=started(night),
        finished=None,
        rnnbench="",
        machine="",
        machine_cpu=None,
        cases=(),
        command="",
        baseline=(),
        versions={},
        steal=None,
        trials=0,
        rows_sha256="",
    )


def _log_uniform(bounds: tuple[float, float], shape: tuple[int, ...], chance: np.random.Generator) -> np.ndarray:
    return np.exp(chance.uniform(*np.log(bounds), shape))
