"""Memory that calls leave behind is growth. The memory of a block's own samples is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rnnbench.measure import memory
from rnnbench.measure.memory_growth import LEAST_BLOCKS, GrowthLog, growth_of

PAGE = 4096


@pytest.fixture
def process(monkeypatch):
    """A process whose `resident` bytes are what the test says: an allocator of a real one keeps lumps of its own."""
    process = SimpleNamespace(resident=1 << 30)
    monkeypatch.setattr(memory, "resident", lambda: process.resident)
    return process


def test_a_leak_is_growth_of_the_calls_that_leak_and_of_no_others(process):
    log = GrowthLog()
    for _ in range(6):
        log.begin()
        process.resident += 8_000_000
        log.called("leaking", 100)
        log.begin()
        process.resident += 32 << 20
        log.called("sound", 100)
        process.resident -= 32 << 20
    log.begin()
    leaking, sound = (growth_of([log.steps(kind)]) for kind in ("leaking", "sound"))
    assert leaking.per_1000_calls == pytest.approx(80e6)
    assert sound.per_1000_calls == 0
    assert leaking.calls == sound.calls == 600


def test_what_happens_between_blocks_is_growth_of_none(process):
    log = GrowthLog()
    log.begin()
    log.called("calls", 10)
    log.begin()
    process.resident += 64 << 20
    log.begin()
    assert log.steps("calls") == [(10, 0)]


def test_what_the_first_block_takes_is_no_growth():
    assert growth_of([[(100, 50 * PAGE), *[(100, 0)] * 6]]).per_1000_calls == 0


def test_a_leak_smaller_than_a_page_a_block_shows_over_many():
    steps = [(100, PAGE if block % 3 == 0 else 0) for block in range(12)]
    assert growth_of([steps]).per_1000_calls == pytest.approx(PAGE / 0.3, rel=0.2)


def test_processes_count_together_and_each_has_slopes_of_its_own():
    growth = growth_of([[(100, 50 * PAGE), (100, 0), (100, 0), (100, 0)], [(200, 90 * PAGE), (200, 0), (200, 0)]])
    assert (growth.per_1000_calls, growth.calls) == (0, 1000)


def test_a_leak_of_most_processes_is_growth_though_the_first_has_none():
    growth = growth_of([[(100, 0)] * 3, *[[(100, PAGE)] * 3] * 2])
    assert (growth.per_1000_calls, growth.calls) == (10 * PAGE, 900)


@pytest.mark.parametrize("blocks", range(LEAST_BLOCKS))
def test_too_few_blocks_give_calls_and_no_growth(blocks):
    growth = growth_of([[(100, PAGE)] * blocks])
    assert (growth.per_1000_calls, growth.calls) == (None, 100 * blocks)


def test_as_many_blocks_as_are_enough_give_growth():
    assert growth_of([[(100, PAGE)] * LEAST_BLOCKS]).per_1000_calls == 10 * PAGE
