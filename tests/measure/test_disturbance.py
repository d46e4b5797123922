"""The kernel's accounts of the core are read, and a block that was without it for long enough is marked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import PATIENCE_S, join

from rnnbench.measure import Disturbance, disturbance
from rnnbench.measure.disturbance import (
    DISTURBED_SHARE,
    ThreadCounters,
    disturbance_since,
    read_core_counters,
    waited_since,
)


@pytest.mark.parametrize(
    ("disturbance", "disturbs"),
    [
        (Disturbance(0, 0.0, 0.0), False),
        (Disturbance(3, DISTURBED_SHARE / 2, None), False),
        (Disturbance(0, 2 * DISTURBED_SHARE, None), True),
        (Disturbance(0, 0.0, 0.01), True),
        (Disturbance(1, None, None), True),
        (Disturbance(0, None, None), False),
        (Disturbance(0, None, 0.01), True),
        (Disturbance(0, 0.75 * DISTURBED_SHARE, 0.75 * DISTURBED_SHARE), True),
    ],
)
def test_a_second_is_disturbed_by_what_was_taken_of_it(disturbance, disturbs):
    assert disturbance.disturbs(1.0) is disturbs


@pytest.fixture
def core():
    """Hold this thread, and what it starts, to one core."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(mine)})
    yield max(mine)
    os.sched_setaffinity(0, mine)


def test_what_the_hypervisor_took_of_the_own_cores_since_then_is_stolen(core, tmp_path, monkeypatch):
    """As /proc/stat counts it, in ticks: the eighth number of each core's line."""
    stat = tmp_path / "stat"
    monkeypatch.setattr(disturbance, "_STAT", stat)

    def write(ticks):
        stat.write_text(
            f"cpu 1 2 3 4 5 6 7 999 0 0\ncpu{core} 1 2 3 4 5 6 7 {ticks} 0 0\ncpu{core + 1} 1 2 3 4 5 6 7 99 0 0\n"
        )

    write(20)
    before = read_core_counters()
    write(23)
    assert disturbance_since(before).stolen == pytest.approx(3 / os.sysconf("SC_CLK_TCK"))


def test_it_is_read_where_the_kernel_tells_it(core):
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    except OSError:
        lines = []
    is_told = any(len(fields) > 8 for fields in lines if fields[0] == f"cpu{core}")
    assert (read_core_counters().stolen is not None) == is_told


def test_a_process_on_the_same_core_is_noticed(core):
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"\n"
            before, begun = read_core_counters(), time.perf_counter()
            while disturbance_since(before).switches < 2:
                waited = time.perf_counter() - begun
                assert waited < PATIENCE_S, "two spinning processes shared one core without a switch"
            found, seconds = disturbance_since(before), time.perf_counter() - begun
        finally:
            other.kill()
    assert found.disturbs(seconds)
    assert found.waited is None or found.waited > 0


@pytest.mark.skipif(
    read_core_counters().thread.waited is None, reason="this kernel does not count for how long a thread waits"
)
def test_a_thread_of_the_same_process_is_no_other_process(core):
    """As a runtime's own thread that works while the caller goes on: both hash, which needs no interpreter.

    Other processes may be on the core, too: what they took stays.
    """

    def work():
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 400_000)

    before, begun = read_core_counters(), time.perf_counter()
    other = threading.Thread(target=work)
    other.start()
    work()
    found, seconds = disturbance_since(before), time.perf_counter() - begun
    now = read_core_counters()
    join(other)
    waited = now.thread.waited - before.thread.waited
    assert waited - found.waited > 3 * DISTURBED_SHARE * seconds


@pytest.mark.parametrize("seconds", [0.01, 100.0])
def test_what_disturbs_a_block_is_a_share_of_its_time(seconds):
    share = DISTURBED_SHARE * seconds
    assert not Disturbance(0, 0.9 * share, None).disturbs(seconds)
    assert Disturbance(0, 1.1 * share, None).disturbs(seconds)


@pytest.mark.parametrize(
    ("waited", "other_threads_s", "cores", "expected"),
    [(1.0, 0.0, 1, 1.0), (1.0, 0.4, 1, 0.6), (1.0, 1.5, 1, 0.0), (1.0, 0.4, 2, 1.0), (1.0, 2.4, 2, 0.6)],
    ids=["no thread", "one core", "more than it waited", "they had the other core", "they wanted both cores"],
)
def test_the_own_threads_are_subtracted_as_far_as_other_cores_could_not_run_them(
    monkeypatch, waited, other_threads_s, cores, expected
):
    """Over two seconds."""
    before = ThreadCounters(waited=5.0, other_threads_s=7.0, time=3.0)
    after = ThreadCounters(waited=5.0 + waited, other_threads_s=7.0 + other_threads_s, time=5.0)
    monkeypatch.setattr(disturbance, "read_thread_counters", lambda: after)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    assert waited_since(before) == pytest.approx(expected)


def test_where_a_count_begins_or_ends_nothing_is_known(monkeypatch):
    counted = ThreadCounters(waited=5.0, other_threads_s=0.0, time=0.0)
    for before, after in ((None, 5.0), (5.0, None)):
        now = replace(counted, waited=after)
        monkeypatch.setattr(disturbance, "read_thread_counters", lambda now=now: now)
        assert waited_since(replace(counted, waited=before)) is None
