"""What a device did around a block of calls, and which of it marks the block."""

from __future__ import annotations

import pytest

from rnnbench.measure import DeviceConditions
from rnnbench.measure.device_conditions import CLOCK_MOVED, DeviceSpell

QUIET = DeviceConditions(clock=2e9)


@pytest.mark.parametrize(
    ("before", "after", "disturbs"),
    [
        (QUIET, QUIET, False),
        (QUIET, DeviceConditions(clock=2e9 * (1 - 2 * CLOCK_MOVED)), True),
        (QUIET, DeviceConditions(clock=2e9 * (1 + 2 * CLOCK_MOVED)), True),
        (QUIET, DeviceConditions(clock=2e9 * (1 + CLOCK_MOVED / 2)), False),
        (QUIET, DeviceConditions(clock=2e9 * (1 + CLOCK_MOVED)), False),
        (QUIET, DeviceConditions(clock=None), False),
        (DeviceConditions(clock=None), QUIET, False),
        (DeviceConditions(clock=2e9, throttled=("heat",)), QUIET, True),
        (QUIET, DeviceConditions(clock=2e9, others=("game (PID 7)",)), True),
    ],
)
def test_a_block_is_marked_where_the_clock_moved_the_device_was_held_down_or_was_shared(before, after, disturbs):
    assert DeviceSpell(before, after).disturbs is disturbs


def test_what_was_seen_at_either_end_is_told_once():
    first = DeviceConditions(throttled=("heat", "power"), others=("game (PID 7)",))
    last = DeviceConditions(throttled=("power", "brake"), others=("game (PID 7)", "film (PID 8)"))
    spell = DeviceSpell(first, last)
    assert spell.throttled == ("heat", "power", "brake")
    assert spell.others == ("game (PID 7)", "film (PID 8)")
