"""Measuring: latencies, memory, threads, disturbances, and what the machine can do. It knows callables, not backends.

`PATHS` declares the latency paths: what is timed of a trial, and how. A sampler gives a block of calls with its
disturbance, and `interval_of` the confidence interval of a median. A `RoofProbe` measures what
the machine can do. `describe_machine` and `examine_machine` say what this machine is, and whether it is fit
for benchmarking. The module `memory` reads this process's resident memory. `docs/measurement.md` says how each figure
is measured.

A name is imported when it is first used: workers are started by the hundred, and need few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnnbench.measure.caches import Evictor, cache_sizes, eviction_bytes
    from rnnbench.measure.disturbance import Disturbance
    from rnnbench.measure.fitness import Fitness, examine_machine
    from rnnbench.measure.imports import ImportClock
    from rnnbench.measure.interval import CONFIDENCE, drift_of, half_width, interval_of
    from rnnbench.measure.machine import MachineConditions, MachineWatch, describe_machine
    from rnnbench.measure.memory import resident_in_use
    from rnnbench.measure.paths import (
        PATHS,
        BlockPlan,
        LatencyPath,
        PathFigure,
        Setting,
        TimedCall,
        requested,
    )
    from rnnbench.measure.roof import Roof, RoofProbe
    from rnnbench.measure.threads import ThreadTimes

_MODULES = {
    "caches": ("Evictor", "cache_sizes", "eviction_bytes"),
    "disturbance": ("Disturbance",),
    "fitness": ("Fitness", "examine_machine"),
    "imports": ("ImportClock",),
    "interval": ("CONFIDENCE", "drift_of", "half_width", "interval_of"),
    "machine": ("MachineConditions", "MachineWatch", "describe_machine"),
    "memory": ("resident_in_use",),
    "paths": ("PATHS", "BlockPlan", "LatencyPath", "PathFigure", "Setting", "TimedCall", "requested"),
    "roof": ("Roof", "RoofProbe"),
    "threads": ("ThreadTimes",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "CONFIDENCE",
    "PATHS",
    "BlockPlan",
    "Disturbance",
    "Evictor",
    "Fitness",
    "ImportClock",
    "LatencyPath",
    "MachineConditions",
    "MachineWatch",
    "PathFigure",
    "Roof",
    "RoofProbe",
    "Setting",
    "ThreadTimes",
    "TimedCall",
    "cache_sizes",
    "describe_machine",
    "drift_of",
    "eviction_bytes",
    "examine_machine",
    "half_width",
    "interval_of",
    "requested",
    "resident_in_use",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
