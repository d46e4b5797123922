"""How far a latency lies above its floor: what the call must read and do, over what the machine was measured to do.

A ratio whose whole interval lies under 1 says that the account or the probe is wrong, never that a program is fast.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from rnnbench.measure.caches import cache_sizes
from rnnbench.measure.interval import interval_of
from rnnbench.measure.roof import Roof
from rnnbench.results.record import LatencyFloor
from rnnbench.rnn.cost import Cost

OUTSIDE = "memory"
"""The level of weights that no cache holds."""


def floor_figure(
    cost: Cost, hoisted: int | None, processes: Sequence[float], looks: Sequence[Sequence[Roof]], lacking: str
) -> LatencyFloor:
    """The floor of a call, and the ratio of its `processes`' medians to it.

    Each process is held against the looks that were taken beside it, so that the machine's drift is in both. `lacking`
    says why no look was taken; the account stands without one.
    """
    account = LatencyFloor(
        nbytes=cost.nbytes,
        operations=cost.operations,
        weights=cost.weights,
        hoisted=hoisted,
        level=cache_level(cost.weights, cache_sizes()),
        unmeasured=lacking,
    )
    pairs = [(median, beside) for median, beside in zip(processes, looks, strict=False) if beside]
    if not pairs:
        return account
    floors = [statistics.median(max(seconds_of(cost, roof)) for roof in beside) for _, beside in pairs]
    ratios = [median / floor for (median, _), floor in zip(pairs, floors, strict=True)]
    taken = [roof for _, beside in pairs for roof in beside]
    reading, computing = (statistics.median(times) for times in zip(*(seconds_of(cost, r) for r in taken), strict=True))
    sizes = dict.fromkeys(reading.working_set for reading in cost.readings)
    return account.model_copy(
        update={
            "seconds": statistics.median(floors),
            "limited_by": "reading" if reading >= computing else "arithmetic",
            "ratio": statistics.geometric_mean(ratios),
            "interval": interval_of(ratios),
            "bandwidth": {str(size): statistics.median(roof.bandwidth[size] for roof in taken) for size in sizes},
            "rate": statistics.median(roof.rate for roof in taken if roof.rate) if taken[0].rate else None,
            "looks": len(taken),
            "unmeasured": "",
        }
    )


def seconds_of(cost: Cost, roof: Roof) -> tuple[float, float]:
    """Least seconds of a call's readings and of its operations, which may go on at the same time."""
    reading = sum(r.nbytes * r.times / roof.bandwidth[r.working_set] for r in cost.readings)
    return reading, cost.operations / roof.rate if roof.rate else 0.0


def cache_level(nbytes: int, sizes: Mapping[str, int]) -> str:
    """The smallest cache for data that holds `nbytes` (`L1d`, `L2`, `L3`), or `memory`; empty where none is known."""
    levels = sorted((size, name) for name, size in sizes.items() if name != "L1i")
    if not levels:
        return ""
    return next((name for size, name in levels if nbytes <= size), OUTSIDE)
