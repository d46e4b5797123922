"""Measuring: latencies, memory, threads, disturbances, and the machine's roof. It knows callables, not backends.

`PATHS` declares the latency paths: the call that each times, and how. A sampler returns a block of calls with its
disturbance. `interval_of` computes the confidence interval of a median. A `RoofProbe` measures the machine's bandwidth
and arithmetic. `describe_machine` has the machine's facts, and `examine_machine` whether it is fit for benchmarking.
The module `memory` reads this process's resident memory. `docs/measurement.md` explains how each figure is measured.

A name is imported when it is first used: workers are started by the hundred, and need few of them.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.measure.blocks import Block, overall_median, process_medians, sample_block, sample_cold
    from rnnbench.measure.caches import Evictor, cache_sizes, eviction_bytes
    from rnnbench.measure.clocks import put_clocks_back, replaced_clocks
    from rnnbench.measure.control_groups import STARTED_ON, cores_at_once, free_memory, memory_limit
    from rnnbench.measure.descendants import SharedSegments, children_of_this_process, read_holdings
    from rnnbench.measure.device_conditions import DeviceConditions, DeviceSpell
    from rnnbench.measure.disturbance import Disturbance
    from rnnbench.measure.energy import ENERGY_SAMPLES, EnergyCounter, EnergyUse
    from rnnbench.measure.fitness import Fitness, examine_machine
    from rnnbench.measure.imports import ImportClock
    from rnnbench.measure.impossible import (
        LEAST_S,
        exceeds_wait,
        impossible_block,
        impossible_served,
        outside_wall_clock,
    )
    from rnnbench.measure.interval import CONFIDENCE, drift_of, half_width, interval_of
    from rnnbench.measure.machine import (
        X86_LANES,
        MachineConditions,
        MachineWatch,
        describe_machine,
        processor_facts,
        processor_features,
        processor_model,
        vector_lanes,
        x86_lanes,
    )
    from rnnbench.measure.memory import resident, resident_in_use
    from rnnbench.measure.memory_growth import GrowthLog, GrowthStep, growth_of
    from rnnbench.measure.metrics import (
        DEVICE_TIME,
        ENERGY,
        METRICS,
        STATE_COPY,
        Metric,
        device_metrics,
        energy_metrics,
        read_metrics,
    )
    from rnnbench.measure.moved_work import (
        BlockSurroundings,
        bound_beforehand,
        cheap_service,
        deferred_work,
        hidden_work,
        in_most_blocks,
        lazy_result,
        put_off_work,
        remembered_work,
        surrounded,
    )
    from rnnbench.measure.paths import PATHS, BlockPlan, LatencyPath, PathFigure, Setting, TimedCall, requested
    from rnnbench.measure.process_cpu import cpu_seconds_beyond, family_cpu_seconds, family_tasks
    from rnnbench.measure.rank_test import exact_rank_p
    from rnnbench.measure.roof import Roof, RoofProbe, speed_of
    from rnnbench.measure.scenarios import SCENARIOS, SERVER, STREAMS, Scenario
    from rnnbench.measure.serving import REQUESTS, Served, arrival_times, frame_times, longest_serving, serve
    from rnnbench.measure.stream_search import FRAMES, Attempt, StreamSearch, most_missed
    from rnnbench.measure.threads import ThreadTimes
    from rnnbench.measure.wall_time import WallTime, describe_seconds
    from rnnbench.measure.warmup import WARMUP_SHARE, WarmUp

__getattr__, __all__ = lazy_names(__name__, __file__)
