"""The latency floor: the time for the bytes and operations that a call needs, at the measured rates of the device.

If the whole interval of the ratio to the floor is below 1, the cost or the probe is wrong, or the timed calls do not do
their work. It never means that the program is fast.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from rnnbench.measure import Roof, interval_of
from rnnbench.results import Finding, FindingKind, LatencyFloor, Limit
from rnnbench.rnn import Cost

OUTSIDE = "memory"
"""The level of weights that do not fit in any cache."""
BELOW_FLOOR = 0.75
"""A latency is not believed if the whole interval of its ratio to the floor is below this. In the committed runs the
smallest upper end of an interval is 0.99, for a network whose weights are in memory. The next are 1.04 to 1.07, for
kernels."""


def latency_floor(
    cost: Cost,
    hoisted: int | None,
    medians: Sequence[float],
    roofs: Sequence[Sequence[Roof]],
    unmeasured: str,
    caches: Mapping[str, int] | None = None,
) -> LatencyFloor:
    """The floor of a call in seconds, and the ratio of the processes' `medians` to it.

    - `cost`: the bytes and operations of a call.
    - `hoisted`: how many steps share one reading of the input weights; None if unknown.
    - `roofs`: for each process, the measurements of the device during it, so that a drift of the device is in both.
    - `unmeasured`: why there are no `roofs`. The cost is recorded all the same.
    - `caches`: bytes of the device's caches by level, if they are known without a measurement.
    """
    caches = caches or next((roof.caches for measured in roofs for roof in measured), {})
    cost_alone = LatencyFloor(
        nbytes=cost.nbytes,
        operations=cost.operations,
        weights=cost.weights,
        hoisted=hoisted,
        level=cache_level(cost.weights, caches),
        unmeasured=unmeasured,
    )
    pairs = [(median, measured) for median, measured in zip(medians, roofs, strict=False) if measured]
    if not pairs:
        return cost_alone
    floors = [statistics.median(floor_seconds(cost, roof) for roof in measured) for _, measured in pairs]
    ratios = [median / floor for (median, _), floor in zip(pairs, floors, strict=True)]
    every_roof = [roof for _, measured in pairs for roof in measured]
    seconds = (seconds_of(cost, roof) for roof in every_roof)
    reading, computing = (statistics.median(times) for times in zip(*seconds, strict=True))
    launch = statistics.median(roof.launch for roof in every_roof)
    parts: dict[Limit, float] = {"reading": reading, "arithmetic": computing, "launch": launch}
    sizes = dict.fromkeys(reading.working_set for reading in cost.readings)
    return cost_alone.model_copy(
        update={
            "seconds": statistics.median(floors),
            "limited_by": max(parts, key=lambda part: parts[part]),
            "ratio": statistics.geometric_mean(ratios),
            "interval": interval_of(ratios),
            "bandwidth": {str(size): statistics.median(roof.bandwidth[size] for roof in every_roof) for size in sizes},
            "rate": statistics.median(roof.rate for roof in every_roof if roof.rate) if every_roof[0].rate else None,
            "launch": launch or None,
            "looks": len(every_roof),
            "unmeasured": "",
        }
    )


def below_floor(floor: LatencyFloor | None) -> list[Finding]:
    """A finding if a latency is below its floor by more than the probe's error; otherwise none."""
    if floor is None or floor.interval is None or floor.interval[1] >= BELOW_FLOOR:
        return []
    detail = (
        f"bound: a call takes {floor.ratio:.2g} of its latency floor (95 %: {floor.interval[0]:.2g} to "
        f"{floor.interval[1]:.2g}): this machine cannot read and compute in that time what a call must"
    )
    return [Finding(kind=FindingKind.TIME, detail=detail, disbelieved=True)]


def floor_seconds(cost: Cost, roof: Roof) -> float:
    """The least seconds of a call on a device with this roof. A call launches at least one program."""
    return max(*seconds_of(cost, roof), roof.launch)


def seconds_of(cost: Cost, roof: Roof) -> tuple[float, float]:
    """The least seconds for a call's readings, and for its operations. Both may happen at the same time.

    The first reading reads everything once. Data that fits on the device's chip need not be read again.
    """
    first, *again = cost.readings
    needed = [first, *(reading for reading in again if reading.working_set > roof.on_chip)]
    reading = sum(r.nbytes * r.times / roof.bandwidth[r.working_set] for r in needed)
    return reading, cost.operations / roof.rate if roof.rate else 0.0


def cache_level(nbytes: int, sizes: Mapping[str, int]) -> str:
    """The smallest data cache that holds `nbytes` (`L1d`, `L2`, `L3`), or `memory`. Empty if no cache is known."""
    levels = sorted((size, name) for name, size in sizes.items() if name != "L1i")
    if not levels:
        return ""
    return next((name for size, name in levels if nbytes <= size), OUTSIDE)
