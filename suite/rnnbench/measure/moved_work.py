"""Finding work that a program has moved out of its timed calls.

The work may be done before a block, in the first look at its results, in a few of its calls, in the garbage collection
or in other threads. Or it may be avoided with a table of earlier results.

A worker measures what happens around every block (`BlockSurroundings`), and `deferred_work` draws conclusions. A busy
machine delays some blocks. So a sign must be seen in three quarters of a process's blocks, and time in which other
processes had the core does not count.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from rnnbench.measure.blocks import Block, undisturbed
from rnnbench.measure.disturbance import read_thread_counters, waited_since

# A program may replace these functions of `time` later.
now, cpu_of_thread, cpu_of_process = time.perf_counter, time.thread_time, time.process_time

# What the nine backends showed (an LSTM 64 → 128, chunks of 1 and 16, every path, on two cores that 12 processes wanted
# at once): three quarters of the first looks took at most 0.3 ms longer than the second, and of the starts at most 0.5
# ms. A call's mean CPU time was at most 1.6 times the median. New calls cost 0.8 to 1.6 times the seen ones.

OUTSIDE_SHARE = 0.1
"""Work outside of the timed calls that is allowed, as a share of their seconds."""
OUTSIDE_S = 0.002
"""Seconds that are allowed in addition, for setting a state or reading a result: a copy, and allocations at first."""
OUTSIDE_CALLS = 3.0
"""Calls whose seconds are allowed in addition: after calls with cold caches a look also has cold caches."""
LOOK_FACTOR, LOOK_S = 2.0, 0.02
"""A second look may take this many times the seconds of the timed calls, and these seconds in addition. In a program
that does the work of the next block there, it takes as long as all calls should, and the calls take almost nothing."""
FASTER_THAN_BOUND = 0.5
"""The least time of a call with cold caches, after a wait or in a scenario, as a share of a bound call's."""
FEW_CALLS_FACTOR = 3.0
"""How many times the median the mean CPU time of a call may be. Rare slow calls of honest programs give less."""
ENOUGH_CALLS = 20
"""The least calls of a block whose mean and median are compared."""
NEW_FACTOR = 2.0
"""How many times longer calls with a new state or new inputs may take. In an honest program they take as long as calls
with known ones: the numbers are the same, in another order."""
NEW_S = 5e-5
"""Seconds that are allowed in addition."""
BIND_CALLS = 5.0
"""Calls whose seconds binding may take for each chunk of a ring."""
BIND_S = 0.0005
"""Seconds per chunk that are allowed in addition: a runtime may convert the chunk in Python."""
NEW_TRIES = 5
"""Comparisons of new and known calls that must all agree. The first one that does not ends the test."""
IDLE_FACTOR = 2.0
"""How many times the seconds of a paced block's calls all threads may use as CPU time."""
IDLE_S = 0.005
"""CPU seconds that are allowed in addition."""
IDLE_CALL_S = 0.0005
"""CPU seconds that are allowed in addition for each wait between two calls: threads may spin before they sleep."""
QUARTER = 4
YOUNGEST = 0
"""The generation of the garbage collector with the newest objects."""
Start = TypeVar("Start")


@dataclass(frozen=True)
class BlockSurroundings:
    """Seconds around one block, less those in which other processes had the core; and CPU seconds within it."""

    before: float
    """Seconds of setting the start state before the block."""
    first_look: float
    """Seconds of reading output and state after the block."""
    second_look: float
    """Seconds of reading them again at once, when no work should be left."""
    last_sync: float
    """Seconds of waiting for the calls after these looks, twice, when no work should be left."""
    collection: float
    """Seconds of collecting the block's garbage. Python's collector is off during a block."""
    calls: int
    timed: float
    """Seconds of all timed calls: their number times the median, which leaves out disturbances."""
    median: float
    """Median seconds of one call."""
    caller_cpu: float
    """CPU seconds of the thread that calls, in the whole block."""
    process_cpu: float
    """CPU seconds of all threads."""

    @property
    def allowed(self) -> float:
        """Seconds that work outside of the timed calls may take."""
        return OUTSIDE_SHARE * self.timed + OUTSIDE_S + OUTSIDE_CALLS * self.median

    @property
    def allowed_look(self) -> float:
        """Seconds that each look may take. It may convert everything that it reads."""
        return LOOK_FACTOR * self.timed + LOOK_S + OUTSIDE_CALLS * self.median


def surrounded(
    sample: Callable[[], Block], prepare: Callable[[], object], look: Callable[[], object], sync: Callable[[], object]
) -> tuple[Block, BlockSurroundings]:
    """Sample a block and measure what surrounds it: `prepare`, the block, `look` twice, `sync`, a garbage collection.

    Python's collector is off until then. Otherwise it would collect the block's garbage before the first look. `sync`
    is measured again when the collector is on, which a program may ask about.
    """
    with undisturbed():
        before = _seconds_with_core(prepare)
        process_cpu, caller_cpu = cpu_of_process(), cpu_of_thread()
        block = sample()
        process_cpu, caller_cpu = cpu_of_process() - process_cpu, cpu_of_thread() - caller_cpu
        first_look, second_look, last_sync = (_seconds_with_core(work) for work in (look, look, sync))
        collection = _seconds_with_core(partial(gc.collect, YOUNGEST))
    last_sync += _seconds_with_core(sync)
    median = statistics.median(block.seconds.tolist())
    timed = median * len(block.seconds) * block.calls_per_sample
    return block, BlockSurroundings(
        before, first_look, second_look, last_sync, collection, block.calls, timed, median, caller_cpu, process_cpu
    )


def deferred_work(path: str, blocks: Sequence[BlockSurroundings], threads: int) -> list[str]:
    """Signs of moved work in the blocks of one path in one process, a sentence each. An honest program gives none."""
    sentences = []
    if _mostly(blocks, lambda b: b.before - b.allowed):
        sentences.append(
            f"{path}: setting the state before a block takes {_typical(b.before for b in blocks)}, the timed calls "
            f"{_typical(b.timed for b in blocks)} together: work of the calls is done before them"
        )
    if _mostly(blocks, lambda b: b.first_look - b.second_look - b.allowed):
        sentences.append(
            f"{path}: the first look at a block's results takes {_typical(b.first_look for b in blocks)}, a second one "
            f"{_typical(b.second_look for b in blocks)}: work of the timed calls is done when somebody looks"
        )
    if _mostly(blocks, lambda b: b.second_look - b.allowed_look):
        sentences.append(
            f"{path}: a second look at a block's results takes {_typical(b.second_look for b in blocks)}, its timed "
            f"calls {_typical(b.timed for b in blocks)} together: work of the next calls is done when somebody looks"
        )
    if _mostly(blocks, lambda b: b.last_sync - b.allowed):
        sentences.append(
            f"{path}: waiting for calls whose results were read takes {_typical(b.last_sync for b in blocks)}, the "
            f"timed calls {_typical(b.timed for b in blocks)}: work is done where nothing is left to wait for"
        )
    if _mostly(blocks, lambda b: b.collection - b.allowed):
        sentences.append(
            f"{path}: collecting the garbage of a block takes {_typical(b.collection for b in blocks)}, its timed "
            f"calls {_typical(b.timed for b in blocks)}: work of the calls is done in the collection"
        )
    if path in ("bound", "public") and _mostly(blocks, _in_few_calls):
        sentences.append(
            f"{path}: a call uses {_typical(b.caller_cpu / b.calls for b in blocks)} of CPU time on average, and the "
            f"median of the timed calls is {_typical(b.median for b in blocks)}: a few calls do the work of the others"
        )
    if path == "paced" and threads == 1 and _mostly(blocks, _between_calls):
        sentences.append(
            f"{path}: the process uses {_typical(b.process_cpu for b in blocks)} of CPU time in a block, whose calls "
            f"take {_typical(b.timed for b in blocks)}: work is done between the calls"
        )
    return sentences


def hidden_work(path: str, blocks: Sequence[BlockSurroundings], bound: Sequence[BlockSurroundings]) -> str:
    """A sentence if calls after a wait are much faster than bound calls; otherwise empty.

    Caches are emptied or grow cold during the wait, so an honest call is slower. Blocks are compared with the fastest
    block of bound calls.
    """
    fastest = min((block.median for block in bound), default=0.0)
    if not _mostly(blocks, lambda b: FASTER_THAN_BOUND * fastest - b.median):
        return ""
    waiting, without = _typical(b.median for b in blocks), _shown(fastest)
    return f"{path}: a call takes {waiting} with a wait before it, and {without} without: work is done during the wait"


def cheap_service(scenario: str, calls: Sequence[float], bound: Sequence[BlockSurroundings]) -> str:
    """A sentence if calls in a scenario are much faster than bound calls; otherwise empty.

    `calls` has the mean seconds of a call in each test of the scenario. There a call comes after those of other
    streams, or after a wait, so an honest one is slower.
    """
    fastest = min((block.median for block in bound), default=0.0)
    if not in_most_blocks(FASTER_THAN_BOUND * fastest - seconds for seconds in calls):
        return ""
    return (
        f"{scenario}: a call takes {_typical(calls)} on average, and a bound call {_shown(fastest)}: results of other "
        "streams or requests are used again"
    )


def remembered_work(
    what: str,
    calls: Callable[[Start], object],
    seen: Start,
    draw: Callable[[], Start],
    settle: Callable[[], object] = lambda: None,
) -> str:
    """A sentence if calls are cheap because the program remembers their results; otherwise empty.

    `calls` makes calls from a given start. `settle` makes the calls from `seen` beforehand, so that their results could
    be remembered. `draw` returns a new start each time.
    """
    best_seen = best_new = float("inf")
    for number in range(NEW_TRIES):
        new = draw()
        # The order alternates. Otherwise work that a program does every so many calls might always hit the same one.
        for start in (new, seen) if number % 2 else (seen, new):
            if start is new:
                best_new = min(best_new, _cpu_seconds(partial(calls, new)))
                continue
            settle()
            best_seen = min(best_seen, _cpu_seconds(partial(calls, seen)))
        if best_new <= NEW_FACTOR * best_seen + NEW_S:
            return ""
    return (
        f"{what}: calls that were made before take {_shown(best_seen)} of CPU time, as many new ones "
        f"{_shown(best_new)}: results of earlier calls are used again"
    )


def put_off_work(what: str, calls: Callable[[int], float], look: Callable[[], object], many: int) -> str:
    """A sentence if two looks at the results take longer after many calls than after one; otherwise empty.

    `calls` makes a number of calls as they are timed, and returns their seconds. `many` is small: a network forgets, so
    a program could carry out only the last of very many calls, and a look would cost little.
    """

    def look_twice() -> None:
        look()
        look()

    least = float("inf")
    for _ in range(NEW_TRIES):
        calls(1)
        after_one = _seconds_with_core(look_twice)
        seconds = calls(many)
        least = min(least, _seconds_with_core(look_twice) - after_one)
        if least <= OUTSIDE_SHARE * seconds + NEW_S:
            return ""
    return (
        f"{what}: two looks at the results take {_shown(least)} longer after {many} calls than after one, and these "
        f"calls take {_shown(seconds)}: work of the calls is done when somebody looks"
    )


def bound_beforehand(bind: Callable[[int], Callable[[], object]], chunks: int, call_s: float) -> str:
    """A sentence if binding a ring does the work of its calls; otherwise empty.

    `bind` returns a function that binds a ring of a number of new chunks. `call_s` is the seconds of a call.
    """
    best_ring = best_one = float("inf")
    for _ in range(NEW_TRIES):
        best_ring, best_one = min(best_ring, _cpu_seconds(bind(chunks))), min(best_one, _cpu_seconds(bind(1)))
        a_chunk = (best_ring - best_one) / (chunks - 1)
        if a_chunk <= BIND_CALLS * call_s + BIND_S:
            return ""
    return (
        f"bound: binding takes {_shown(a_chunk)} more for each chunk of the ring, and a call takes {_shown(call_s)}: "
        f"work of the calls is done while binding"
    )


def lazy_result(result: np.ndarray) -> str:
    """A sentence if a public call returned no plain array, which may be computed later; otherwise empty."""
    if type(result) is np.ndarray:
        return ""
    return f"public: a call returns a {type(result).__name__} and no array: it may be computed when somebody looks"


def _seconds_with_core(work: Callable[[], object]) -> float:
    """Seconds of `work`, less those in which other processes had the core.

    Waiting for a device, and for other threads and processes of the program, counts. The thread's CPU time always does:
    on a busy machine the kernel may count more time without a core than there was.
    """
    counters = read_thread_counters()
    start, cpu = now(), cpu_of_thread()
    work()
    seconds, cpu = now() - start, cpu_of_thread() - cpu
    return max(cpu, seconds - (waited_since(counters) or 0.0))


def _cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of all threads during `work`. Wall time of so few short intervals would depend on other programs."""
    start = cpu_of_process()
    work()
    return cpu_of_process() - start


def _in_few_calls(block: BlockSurroundings) -> float:
    if block.calls < ENOUGH_CALLS:
        return -1.0
    return block.caller_cpu / block.calls - FEW_CALLS_FACTOR * block.median


def _between_calls(block: BlockSurroundings) -> float:
    return block.process_cpu - (IDLE_FACTOR * block.timed + IDLE_CALL_S * block.calls + IDLE_S)


def in_most_blocks(excess: Iterable[float]) -> bool:
    """Whether three quarters of the blocks' figures are above 0. A busy machine may delay some blocks."""
    ordered = sorted(excess)
    return bool(ordered) and ordered[len(ordered) // QUARTER] > 0


def _mostly(blocks: Sequence[BlockSurroundings], excess: Callable[[BlockSurroundings], float]) -> bool:
    return in_most_blocks(map(excess, blocks))


def _typical(seconds: Iterable[float]) -> str:
    return _shown(statistics.median(seconds))


def _shown(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms"
