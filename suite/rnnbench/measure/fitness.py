"""Whether this machine is fit to measure on, now: what is read of it, and what of that speaks against it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import psutil

from rnnbench.measure.machine import Watch, describe_machine

WATCHED_S = 1.0
"""Seconds over which what else the machine does is watched."""
BUSY = 0.25
"""Load per usable core from which a measurement shares its core with something."""
STEAL = 0.01
"""Share of the processors' time that a host may keep for others: below it few blocks are touched."""
FREE = 2 << 30
"""Bytes that a compiler and a run want at least."""
SLOW_CLOCK_S = 1e-6
"""Cost of reading the clock from which calls of some microseconds drown in it."""
HOT = 90.0
"""°C at which most processors begin to slow down."""


@dataclass(frozen=True)
class Fitness:
    facts: dict[str, Any]
    """What was read, by `describe_machine`'s keys, with `available` (bytes) and `steal` (a share, over a second)."""
    warnings: tuple[str, ...]


def look() -> Fitness:
    """Watch the machine for a second."""
    watch = Watch()
    time.sleep(WATCHED_S)
    facts = describe_machine()
    facts |= {
        "available": psutil.virtual_memory().available,
        "steal": watch.conditions().steal,
        "threads": {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")},
        "llvmlite": find_spec("llvmlite") is not None,
    }
    return Fitness(facts, tuple(warnings(facts)))


def warnings(facts: dict[str, Any]) -> Iterator[str]:
    """Sentences: what is wrong, and what to do."""
    if facts["usable_cores"] < 2:
        yield "One core is usable: the suite itself and what it measures share it. Allow it another."
    if facts["load"] / facts["usable_cores"] > BUSY:
        yield (
            f"The load is {facts['load']:.1f} on {facts['usable_cores']} usable cores: something else is running. Wait "
            "until it has ended, or trust no small difference."
        )
    if (facts["steal"] or 0.0) > STEAL:
        yield f"The machine's host keeps {facts['steal']:.1%} of the processors' time for others: nothing here ends it."
    if facts.get("governor", "performance") != "performance":
        yield (
            f"The governor is '{facts['governor']}', which lets the clock wander: set it to 'performance' "
            "(cpupower frequency-set -g performance)."
        )
    if facts["available"] < FREE:
        yield f"{facts['available'] >> 20} MiB of memory are free: compilers may run out of it. Close something."
    if facts["clock_cost_s"] > SLOW_CLOCK_S:
        yield (
            f"Reading the clock costs {facts['clock_cost_s'] * 1e6:.1f} µs, as it does where the kernel must be asked: "
            "short calls are timed several at once."
        )
    if (facts.get("temperature") or 0.0) > HOT:
        yield f"The processor is at {facts['temperature']:.0f} °C and may be slowing down: let it cool."
    if facts["threads"]:
        named = ", ".join(f"{name}={value}" for name, value in facts["threads"].items())
        yield f"{named} in the environment: workers set their own, but what backends add to it may follow yours."
    if not facts["llvmlite"]:
        yield "Floors are not measured: llvmlite is not installed; pip install 'rnnbench[floor]'."
