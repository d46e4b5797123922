"""Impossible times: those that no clock can have shown. A trial with such a time fails."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rnnbench.measure.blocks import Block
from rnnbench.measure.clocks import measure_clock
from rnnbench.measure.serving import Served

LEAST_S = 1e-12
"""Seconds that a call can take: less than a thousandth of a clock tick is no measurement."""
ROUNDING_S = 1e-6
"""Seconds per reading by which sums and differences may be off: the clock has nanoseconds, and floats round."""
WAIT_S = 1e-3
"""Seconds by which a worker's time may exceed the suite's wait. Both read the same clock, the suite before its command
and after the reply, so this is far more than needed."""
STEPPED_S = 2.0
"""Seconds by which a block's start may lie outside of its command by the wall clock, which may be adjusted."""


def impossible_block(block: Block, calls_per_sample: int = 1) -> str:
    """A sentence if the times of a block are impossible; otherwise empty. `calls_per_sample` is what was requested."""
    seconds = block.seconds
    if len(seconds) == 0:
        return "a block of calls has no sample"
    if not np.isfinite(seconds).all():
        return "a sample is not a finite number of seconds"
    if (seconds < LEAST_S).any():
        steps = f", and the clock moves in steps of {measure_clock().resolution:.3g} s"
        return f"a sample is {float(seconds.min()):.3g} s; a call takes longer than 0 s{steps}"
    if block.calls_per_sample != calls_per_sample:
        return f"{block.calls_per_sample} calls were timed as one, and {calls_per_sample} were requested"
    if block.warm_calls < 0 or not 0 <= block.missed <= len(seconds):
        return f"{block.warm_calls} warm calls and {block.missed} of {len(seconds)} deadlines missed are no counts"
    if problem := impossible_seconds({"start": block.start, "elapsed": block.elapsed}):
        return problem
    inside = float(seconds.sum()) * calls_per_sample
    if inside > block.elapsed + ROUNDING_S * (1 + len(seconds)):
        return f"its samples take {inside:.6g} s together, and the whole block {block.elapsed:.6g} s"
    return ""


def impossible_served(served: Served) -> str:
    """A sentence if the times of served work are impossible; otherwise empty."""
    seconds = served.latencies
    if not 0 < len(seconds) <= served.due or not 0 <= served.missed <= len(seconds):
        return f"{len(seconds)} of {served.due} pieces of work with {served.missed} deadlines missed are no counts"
    if not np.isfinite(seconds).all() or (seconds < LEAST_S).any():
        return "a latency is not a number of seconds above 0"
    if problem := impossible_seconds({"start": served.start, "busy": served.busy, "elapsed": served.elapsed}):
        return problem
    longest = max(float(seconds.max()), served.busy)
    if longest > served.elapsed + ROUNDING_S * (1 + len(seconds)):
        return f"its calls take {longest:.6g} s, and all of it {served.elapsed:.6g} s"
    return ""


def impossible_seconds(named: Mapping[str, float | None]) -> str:
    """A sentence if one of these times is impossible; otherwise empty. None is a time that was not measured."""
    for name, seconds in named.items():
        if seconds is not None and (not math.isfinite(seconds) or seconds < -ROUNDING_S):
            return f"{name} is {seconds:.3g} s"
    return ""


def exceeds_wait(named: Mapping[str, float | None], waited: float) -> str:
    """A sentence if the worker's times exceed the seconds that the suite waited for it; otherwise empty."""
    if problem := impossible_seconds(named):
        return problem
    total = sum(seconds or 0.0 for seconds in named.values())
    if total > waited + WAIT_S:
        names = " and ".join(named)
        return f"its worker says that {names} took {total:.6g} s, and the suite waited {waited:.6g} s for all of it"
    return ""


def outside_wall_clock(start: float, began: float, ended: float) -> str:
    """A sentence if a block began outside of its command, by the wall clock; otherwise empty."""
    earliest, latest = min(began, ended) - STEPPED_S, max(began, ended) + STEPPED_S
    if earliest <= start <= latest:
        return ""
    return f"its block began {start - began:+.3g} s from the moment at which the suite asked for it"
