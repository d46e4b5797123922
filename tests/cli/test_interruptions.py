"""A signal or a kill of a long command loses nothing that was finished and leaves nothing.

`tests/benchmarks` has all of them, in fresh processes: here they are forked.
"""

from __future__ import annotations

import random

import pytest
from interrupted_commands import SHORT, SHORT_BLOWS, fork_here, interrupt
from quick_tests import for_proof

pytest.importorskip("duckdb")


@pytest.mark.parametrize("command", [SHORT[0], *for_proof(*SHORT[1:])], ids=lambda each: each.name)
def test_after_a_signal_the_same_command_goes_on_and_nothing_is_lost_or_left(tmp_path, command):
    done = interrupt(command, tmp_path, SHORT_BLOWS, random.Random(1), 1.0, fork_here)
    assert done.blows == SHORT_BLOWS
    assert done.wrong == []
