"""Work that was moved out of the timed calls. It may be in what comes before a block, in the first look at its results,
or in a few of its calls. It may also be in the garbage collection, in other threads, or in a table of earlier results.

A worker notes what lies around every block (`BlockSurroundings`), and `deferred_work` says what that shows. A machine
that is busy delays one block or the other. So what counts must be seen in three quarters of a process's blocks, and
the time in which other processes had the core does not count.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from rnnbench.measure.blocks import Block, undisturbed
from rnnbench.measure.disturbance import read_thread_counters, waited_since

# Read before any framework is imported: a program may put others in their place later.
CLOCKS = MappingProxyType(
    {
        name: getattr(time, name)
        for name in (
            *("perf_counter_ns", "perf_counter", "time", "time_ns", "monotonic", "monotonic_ns"),
            *("process_time", "thread_time", "clock_gettime", "sleep"),
        )
    }
)
now, cpu_of_thread, cpu_of_process = time.perf_counter, time.thread_time, time.process_time

# What the nine backends showed (an LSTM 64 → 128, chunks of 1 and 16, every path, on two cores that 12 processes wanted
# at once): three quarters of the first looks took at most 0.3 ms longer than the second, and of the starts at most 0.5
# ms. A call's mean CPU time was at most 1.6 times the median. New calls cost 0.8 to 1.6 times the seen ones.

OUTSIDE_SHARE = 0.1
"""Of the seconds in timed calls: work of this size beside them is part of them."""
OUTSIDE_S = 0.002
"""What setting a state or looking at a result may take in any case: a copy, and allocations on its first use."""
OUTSIDE_CALLS = 3.0
"""Calls that it may take in any case. A call whose caches were emptied is followed by a look with empty caches."""
LOOK_FACTOR, LOOK_S = 2.0, 0.02
"""Of the seconds in timed calls, and in any case, what a second look may take. A program that does the work of the next
block there takes as long as all of its calls would, and its calls take next to nothing."""
FASTER_THAN_BOUND = 0.5
"""Share of a bound call that a call takes at the least where caches were emptied, or the stream waited before it."""
FEW_CALLS_FACTOR = 5.0
"""How much more CPU time the calls may take on average than the median says: a block with rare slow calls has less."""
ENOUGH_CALLS = 20
"""Calls of a block from which its mean and its median are compared."""
NEW_FACTOR = 2.0
"""How much longer calls may take that continue from a state, or have inputs, that were never seen before. An honest
program takes as long: the numbers are the same ones in another order."""
NEW_S = 5e-5
BIND_CALLS = 5.0
"""Calls that binding may take for each chunk of a ring."""
BIND_S = 0.0005
"""What it may take for each chunk in any case: it converts the chunk, which a runtime may do in Python."""
NEW_TRIES = 5
"""Comparisons of new and seen calls that must all agree. The first that does not ends them."""
IDLE_FACTOR = 2.0
"""How much more CPU time all threads may use in a paced block than its calls take."""
IDLE_S = 0.005
IDLE_CALL_S = 0.0005
"""The same, for each wait between two calls: the sleep, and threads that spin a little before they sleep too."""
QUARTER = 4
YOUNGEST = 0
"""The generation of the collector that has what was made since it last ran."""
Start = TypeVar("Start")


@dataclass(frozen=True)
class BlockSurroundings:
    """Seconds around one block, without those in which other processes had the core, and CPU seconds in it."""

    before: float
    """Of what puts the program into its start state."""
    first_look: float
    """Of reading output and state after the block."""
    second_look: float
    """Of reading them again at once. There is nothing left to do."""
    last_sync: float
    """Of waiting for the calls after these looks. Nothing is left to wait for."""
    collection: float
    """Of collecting the garbage that the block left. Python's collector rests in a block."""
    calls: int
    timed: float
    """In all calls that were timed, by their median: what the machine takes away meanwhile is not in it."""
    median: float
    """Of one call."""
    caller_cpu: float
    """CPU seconds of the thread that calls, in the whole block."""
    process_cpu: float
    """CPU seconds of all threads."""

    @property
    def allowed(self) -> float:
        """Seconds that may lie outside."""
        return OUTSIDE_SHARE * self.timed + OUTSIDE_S + OUTSIDE_CALLS * self.median

    @property
    def allowed_look(self) -> float:
        """Seconds that each look may take, also where it converts all that it reads."""
        return LOOK_FACTOR * self.timed + LOOK_S + OUTSIDE_CALLS * self.median


def surrounded(
    sample: Callable[[], Block], prepare: Callable[[], object], look: Callable[[], object], sync: Callable[[], object]
) -> tuple[Block, BlockSurroundings]:
    """A block, and what lies around it: `prepare` before it; `look` twice, `sync` and a collection of garbage after it.

    Python's collector rests until then: it would collect the block's garbage between the block and the first look.
    """
    with undisturbed():
        before = _seconds_with_core(prepare)
        process_cpu, caller_cpu = cpu_of_process(), cpu_of_thread()
        block = sample()
        process_cpu, caller_cpu = cpu_of_process() - process_cpu, cpu_of_thread() - caller_cpu
        first_look, second_look, last_sync = (_seconds_with_core(work) for work in (look, look, sync))
        collection = _seconds_with_core(partial(gc.collect, YOUNGEST))
    median = statistics.median(block.seconds.tolist())
    timed = median * len(block.seconds) * block.calls_per_sample
    return block, BlockSurroundings(
        before, first_look, second_look, last_sync, collection, block.calls, timed, median, caller_cpu, process_cpu
    )


def deferred_work(path: str, blocks: Sequence[BlockSurroundings], threads: int) -> list[str]:
    """What the blocks of one path in one process show, a sentence each; none of an honest program."""
    found = []
    if _mostly(blocks, lambda b: b.before - b.allowed):
        found.append(
            f"{path}: setting the state before a block takes {_typical(b.before for b in blocks)}, the timed calls "
            f"{_typical(b.timed for b in blocks)} together: work of the calls is done before them"
        )
    if _mostly(blocks, lambda b: b.first_look - b.second_look - b.allowed):
        found.append(
            f"{path}: the first look at a block's results takes {_typical(b.first_look for b in blocks)}, a second one "
            f"{_typical(b.second_look for b in blocks)}: work of the timed calls is done when somebody looks"
        )
    if _mostly(blocks, lambda b: b.second_look - b.allowed_look):
        found.append(
            f"{path}: a second look at a block's results takes {_typical(b.second_look for b in blocks)}, its timed "
            f"calls {_typical(b.timed for b in blocks)} together: work of the next calls is done when somebody looks"
        )
    if _mostly(blocks, lambda b: b.last_sync - b.allowed):
        found.append(
            f"{path}: waiting for calls whose results were read takes {_typical(b.last_sync for b in blocks)}, the "
            f"timed calls {_typical(b.timed for b in blocks)}: work is done where nothing is left to wait for"
        )
    if _mostly(blocks, lambda b: b.collection - b.allowed):
        found.append(
            f"{path}: collecting the garbage of a block takes {_typical(b.collection for b in blocks)}, its timed "
            f"calls {_typical(b.timed for b in blocks)}: work of the calls is done in the collection"
        )
    if path in ("bound", "public") and _mostly(blocks, _in_few_calls):
        found.append(
            f"{path}: a call uses {_typical(b.caller_cpu / b.calls for b in blocks)} of CPU time on average, and the "
            f"median of the timed calls is {_typical(b.median for b in blocks)}: a few calls do the work of the others"
        )
    if path == "paced" and threads == 1 and _mostly(blocks, _between_calls):
        found.append(
            f"{path}: the process uses {_typical(b.process_cpu for b in blocks)} of CPU time in a block, whose calls "
            f"take {_typical(b.timed for b in blocks)}: work is done between the calls"
        )
    return found


def hidden_work(path: str, blocks: Sequence[BlockSurroundings], bound: Sequence[BlockSurroundings]) -> str:
    """Whether calls with a wait before each are much faster than bound ones, in a sentence; empty where not.

    Caches are emptied then, or grow cold, so an honest call is slower. Blocks are compared with the fastest one
    of bound calls.
    """
    fastest = min((block.median for block in bound), default=0.0)
    if not _mostly(blocks, lambda b: FASTER_THAN_BOUND * fastest - b.median):
        return ""
    waiting, without = _typical(b.median for b in blocks), _shown(fastest)
    return f"{path}: a call takes {waiting} with a wait before it, and {without} without: work is done during the wait"


def replaced_clocks() -> str:
    """The clocks that a program has put its own in place of, `time.time, time.sleep`; empty if none."""
    return ", ".join(f"time.{name}" for name, clock in CLOCKS.items() if getattr(time, name, None) is not clock)


def put_clocks_back() -> None:
    """The clocks of Python's `time` are its own again."""
    for name, clock in CLOCKS.items():
        setattr(time, name, clock)


def remembered_work(
    what: str,
    calls: Callable[[Start], object],
    seen: Start,
    draw: Callable[[], Start],
    settle: Callable[[], object] = lambda: None,
) -> str:
    """Whether calls are cheap because their results are known already, in a sentence; empty where not.

    `calls` makes some from a start that is given. All that it makes from `seen` was made before, once `settle` was
    called. `draw` gives a start that is new each time.
    """
    best_seen = best_new = float("inf")
    for number in range(NEW_TRIES):
        new = draw()
        # In turn the one and the other first: what a program does every so many calls would always hit the same one.
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
    """Whether a look at the results takes longer after many calls than after one, in a sentence; empty where not.

    `calls` makes so many, as they are timed, and gives their seconds. A program that puts them off needs not carry all
    of them out. A network forgets, so the last ones are enough, and the look after a long block costs little.
    """
    least = float("inf")
    for _ in range(NEW_TRIES):
        calls(1)
        after_one = _seconds_with_core(look)
        seconds = calls(many)
        least = min(least, _seconds_with_core(look) - after_one)
        if least <= OUTSIDE_SHARE * seconds + NEW_S:
            return ""
    return (
        f"{what}: a look at the results takes {_shown(least)} longer after {many} calls than after one, and these "
        f"calls take {_shown(seconds)}: work of the calls is done when somebody looks"
    )


def bound_beforehand(bind: Callable[[int], Callable[[], object]], chunks: int, call_s: float) -> str:
    """Whether binding a ring does the work of its calls, in a sentence; empty where not.

    `bind` gives what binds a ring of so many new chunks; `call_s` is what a call takes.
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
    """Whether what a public call returned may be computed when somebody looks, in a sentence; empty where not."""
    if type(result) is np.ndarray:
        return ""
    return f"public: a call returns a {type(result).__name__} and no array: it may be computed when somebody looks"


def _seconds_with_core(work: Callable[[], object]) -> float:
    """Seconds until it is done, without those in which other processes had the core.

    Waiting for a device, or for other threads and processes of the program, counts.
    """
    counters = read_thread_counters()
    start = now()
    work()
    seconds = now() - start
    return max(0.0, seconds - (waited_since(counters) or 0.0))


def _cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of all threads. Wall time would be that of a busy machine too: these intervals are few and short."""
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
    """Whether the blocks' figures are above 0 in three quarters of them: a busy machine delays one or another."""
    ordered = sorted(excess)
    return bool(ordered) and ordered[len(ordered) // QUARTER] > 0


def _mostly(blocks: Sequence[BlockSurroundings], excess: Callable[[BlockSurroundings], float]) -> bool:
    return in_most_blocks(map(excess, blocks))


def _typical(seconds: Iterable[float]) -> str:
    return _shown(statistics.median(seconds))


def _shown(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms"
