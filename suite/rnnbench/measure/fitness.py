"""Checking whether this machine is fit for benchmarking now: its facts, and warnings."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rnnbench.measure.control_groups import free_memory
from rnnbench.measure.machine import MachineWatch, describe_machine
from rnnbench.measure.steadiness import SHARE, measure_scatter
from rnnbench.optional import MissingExtraError
from rnnbench.spelling import percents

WATCHED_S = 3.0
"""Seconds over which the machine is watched."""
BUSY = 0.25
"""Load per usable core. Above it a measurement shares its core with another program."""
STEAL = 0.01
"""Share of the processors' time that the host gives to others. Below it few blocks are disturbed."""
UNSTEADY = 0.05
"""The largest scatter of a steady core. Above it a latency has a wide interval, however often it is measured."""
FREE = 2 << 30
"""Bytes of memory that a compiler and a run need."""
SLOW_CLOCK_S = 1e-6
"""Seconds to read the clock. Above it a call of a few microseconds cannot be timed alone."""
COARSE_CLOCK_S = 1e-5
"""Seconds between two steps of the clock. Above it the shortest calls would seem to take no time."""
HOT = 90.0
"""The temperature in °C at which most processors begin to slow down."""


@dataclass(frozen=True)
class Fitness:
    """Facts about the machine, and warnings."""

    facts: dict[str, Any]
    """The facts of `describe_machine`, and `available` (bytes that processes may still use), `steal` (a share of the
    processors' time, or None), `scatter` (`measure_scatter`; None without llvmlite), `threads` (variables that set a
    number of threads)."""
    warnings: tuple[str, ...]


def examine_machine() -> Fitness:
    """Watch the machine for WATCHED_S seconds."""
    facts = describe_machine()
    watch = MachineWatch()
    try:
        scatter = measure_scatter(WATCHED_S)
    except MissingExtraError:
        scatter = None
        time.sleep(WATCHED_S)
    facts |= {
        "available": free_memory(),
        "steal": watch.conditions().steal,
        "scatter": scatter,
        "threads": {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")},
    }
    return Fitness(facts, tuple(warnings(facts)))


def warnings(facts: dict[str, Any]) -> Iterator[str]:
    """A sentence for each problem, with what to do."""
    if facts["usable_cores"] < 2:
        yield "One core is usable: the suite and the programs that it measures share it. Allow a second core."
    if quota := facts.get("cpu_quota"):
        yield (
            f"A control group allows the time of {quota:.3g} cores: a program that needs more is stopped for up to 0.1 "
            "s at a time. Measure without this limit (`docker run --cpus`, cpu.max)."
        )
    if facts["load"] / facts["usable_cores"] > BUSY:
        yield (
            f"The load is {facts['load']:.1f} on {facts['usable_cores']} usable cores: something else is running. Wait "
            "until it has ended, or do not trust small differences."
        )
    if (facts["steal"] or 0.0) > STEAL:
        steal = percents(facts["steal"])
        yield f"The machine's host gives {steal} of the processors' time to others. Nothing here stops it."
    if max((facts["scatter"] or {}).values(), default=0.0) > UNSTEADY:
        yield (
            f"The same work takes different times: {100 * SHARE:.0f} % of its readings differ by up to "
            f"{100 * max(facts['scatter'].values()):.0f} % from their median. If nothing else runs here, other virtual "
            "machines of this host use its caches or cores. Wait for a quieter hour, or compare by `rnnbench ab`, "
            "which samples both sides in turn."
        )
    if facts.get("governor", "performance") != "performance":
        yield (
            f"The governor is '{facts['governor']}', which changes the clock rate: set it to 'performance' "
            "(cpupower frequency-set -g performance)."
        )
    if facts["available"] < FREE:
        yield f"{facts['available'] >> 20} MiB of memory are free: compilers may need more. Close other programs."
    if facts["clock_cost_s"] > SLOW_CLOCK_S:
        yield (
            f"Reading the clock costs {facts['clock_cost_s'] * 1e6:.1f} µs, because it needs a call of the kernel: "
            "short calls are timed several at once."
        )
    if facts["clock_resolution_s"] > COARSE_CLOCK_S:
        yield (
            f"The clock moves in steps of {facts['clock_resolution_s'] * 1e3:.3g} ms: shorter calls cannot be timed. "
            "Have the kernel use another clock (/sys/devices/system/clocksource)."
        )
    if (facts.get("temperature") or 0.0) > HOT:
        yield f"The processor is at {facts['temperature']:.0f} °C and may be slowing down: let it cool down."
    if facts["threads"]:
        variables = ", ".join(f"{name}={value}" for name, value in facts["threads"].items())
        yield f"{variables} in the environment: workers set their own values, but a backend may follow yours."
    if facts["scatter"] is None:
        yield (
            "Floors, and how steady the machine is, are not measured: llvmlite is not installed; pip install "
            "'rnnbench[floor]'."
        )
