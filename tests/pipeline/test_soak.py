"""Trials that fail at random leave nothing in the suite's process. tests/benchmarks has two thousand of them."""

from __future__ import annotations

import random

import pytest
from soak import soak_round

pytestmark = pytest.mark.usefixtures("few_checks")


def test_trials_leave_no_descriptor_thread_child_or_file(tmp_path):
    draw = random.Random(1)
    before, mistakes = soak_round(1, draw, tmp_path)
    assert not mistakes
    after, mistakes = soak_round(3, draw, tmp_path)
    assert not mistakes
    # Fewer, where something of an earlier test has gone meanwhile.
    assert after.descriptors <= before.descriptors
    assert after.threads <= before.threads
    assert after.children == 0
