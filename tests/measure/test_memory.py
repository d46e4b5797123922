"""Memory figures follow what a process allocates, frees and leaves to its children."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from alone import alone
from faulty_leavings import Segment
from waiting import PATIENCE_S

from rnnbench.measure import SharedSegments, descendants, memory

SIZE = 64 << 20


pytestmark = pytest.mark.usefixtures("own_segments")


@pytest.mark.proof
def test_the_peak_remembers_what_was_freed_until_it_is_forgotten():
    def measure():
        memory.reset_peak()
        before = memory.peak()
        # Not from the allocator, which may keep what is freed.
        with mmap.mmap(-1, SIZE) as block:
            np.frombuffer(block, np.uint8)[:] = 1
            resident = memory.resident()
        peak = memory.peak()
        memory.reset_peak()
        return resident, peak - before, memory.peak() - before

    resident, peak, forgotten = alone(measure)
    assert resident >= SIZE
    assert peak >= 0.9 * SIZE
    assert forgotten < 0.5 * SIZE


def test_a_childs_peak_is_seen_once_it_has_ended():
    subprocess.run([sys.executable, "-c", f"b'x' * {2 * SIZE}"], check=True, timeout=PATIENCE_S)
    assert memory.children_peak() >= 2 * SIZE


def test_what_was_freed_is_not_in_use_though_an_allocator_may_keep_it():
    def measure():
        memory.resident_in_use()
        before = memory.resident_in_use()
        blocks = [np.ones(1 << 16, np.uint8) for _ in range(SIZE >> 16)]
        last = np.ones(1 << 16, np.uint8)
        used = memory.resident_in_use() - before
        del blocks
        left = memory.resident_in_use() - before
        assert last.all(), "which keeps the heap from shrinking by itself"
        return used, left

    used, left = alone(measure)
    assert used >= 0.9 * SIZE
    assert left < 0.1 * SIZE


@pytest.mark.proof
def test_memory_that_is_kept_is_resident():
    def measure():
        before = memory.resident()
        kept = np.ones(SIZE, np.uint8)
        return memory.resident() - before, kept.nbytes

    grown, nbytes = alone(measure)
    assert grown >= 0.9 * nbytes


def test_a_process_without_children_and_segments_has_its_resident_bytes_and_no_more():
    def measure():
        return (
            abs(memory.resident() - psutil.Process().memory_info().rss),
            abs(memory.peak() - high_water_mark()),
        )

    resident, peak = alone(measure)
    assert resident < 1 << 20, "what looking itself takes"
    assert peak < 1 << 20


def high_water_mark():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024


def test_what_a_living_child_computes_with_counts_and_what_it_shares_does_not_count_twice():
    def measure():
        kept = np.ones(SIZE, np.uint8)
        before, peak = memory.resident(), memory.peak()
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            own = np.ones(SIZE, np.uint8)
            os.write(tell, b".")
            signal.pause()
            os._exit(int(own[0] + kept[0]))
        os.read(ready, 1)
        try:
            return memory.resident() - before, memory.peak() - peak
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    grown, peak_grown = alone(measure)
    assert 0.9 * SIZE <= grown < 1.5 * SIZE
    assert 0.9 * SIZE <= peak_grown < 1.5 * SIZE


ONE_SEGMENT = """
import sys
from pathlib import Path
from rnnbench.measure import SharedSegments, descendants, memory
descendants._SEGMENTS = Path(sys.argv[1])
descendants.SEGMENTS = memory.SEGMENTS = SharedSegments()
from faulty_leavings import Segment
before = memory.resident()
segment = Segment(int(sys.argv[2]))
mapped = memory.resident() - before
segment.close()
print(mapped, memory.resident() - before)
"""


def test_shared_memory_counts_once_whether_it_is_mapped_or_not(own_segments):
    """In an interpreter of its own, which has nothing of what earlier tests left to this one's allocator."""
    command = [sys.executable, "-c", ONE_SEGMENT, str(own_segments), str(SIZE)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=paths, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    for rise in map(int, done.stdout.split()):
        assert 0.9 * SIZE <= rise < 1.5 * SIZE, done.stdout


FOREIGN = """
import mmap, os, sys
if os.fork():
    os._exit(0)
with open(sys.argv[1], "xb+") as file:
    file.truncate(1 << 20)
    segment = mmap.mmap(file.fileno(), 1 << 20)
segment.write(bytes(1 << 20))
print("made", flush=True)
sys.stdin.read()
"""


def test_a_segment_that_a_neighbour_made_is_not_counted(own_segments):
    segments, made = SharedSegments(), own_segments / "foreign"
    command = [sys.executable, "-c", FOREIGN, str(made)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as neighbour:
        assert neighbour.stdout is not None
        assert neighbour.stdout.readline() == b"made\n"
        neighbour.wait(PATIENCE_S)
        assert made.exists()
        assert segments.nbytes() == segments.held() == segments.unmapped() == 0


def test_a_file_that_nobody_here_was_seen_to_hold_is_not_counted(own_segments):
    """It may be a neighbour's: the kernel does not say who made it."""
    segments = SharedSegments()
    (own_segments / "unheld").write_bytes(bytes(SIZE))
    assert segments.nbytes() == segments.held() == segments.unmapped() == 0
    with (own_segments / "unheld").open("rb"):
        assert (segments.nbytes(), segments.held()) == (SIZE, 1)
    assert (segments.nbytes(), segments.held()) == (SIZE, 0)


def test_a_segment_that_goes_while_its_holders_are_looked_for_is_not_counted(monkeypatch):
    segments = SharedSegments()
    segment = Segment(SIZE)

    def held_by(_):
        segment.path.unlink(missing_ok=True)
        return {str(segment.path)}

    monkeypatch.setattr(descendants, "_held_by", held_by)
    assert segments.nbytes() == 0


def test_a_finished_child_counts_with_what_it_had_beyond_its_parent(monkeypatch):
    before, rss = memory.children_peak(), psutil.Process().memory_info().rss
    assert memory.finished_beyond(before) == 0, "none has finished"
    monkeypatch.setattr(memory, "children_peak", lambda: max(before, rss) + 4 * SIZE)
    assert memory.finished_beyond(before) >= 3 * SIZE
    monkeypatch.setattr(memory, "children_peak", lambda: rss // 2)
    assert memory.finished_beyond(0) == 0, "it had no more than its parent gave it"


@pytest.mark.proof
def test_a_file_in_memory_that_nobody_maps_counts_once_and_a_mapped_one_as_its_pages():
    def measure():
        before = memory.resident(), memory.peak()
        file = os.memfd_create("weights")
        os.ftruncate(file, SIZE)
        for at in range(0, SIZE, 1 << 20):
            os.pwrite(file, bytes(1 << 20), at)
        os.dup(file)
        unmapped = memory.resident() - before[0], memory.peak() - before[1]
        with mmap.mmap(file, SIZE) as block:
            assert not np.frombuffer(block, np.uint8).any()
            mapped = memory.resident() - before[0]
        return *unmapped, mapped

    assert all(0.9 * SIZE < grown < 1.3 * SIZE for grown in alone(measure))
