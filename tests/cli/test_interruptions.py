"""A signal or a kill of a long command loses nothing that was finished and leaves nothing: see `tests/benchmarks`."""

from __future__ import annotations

import random

import pytest
from interrupted_commands import COMMANDS, interrupt

pytest.importorskip("duckdb")

SIGNALS = 2
"""The proof in tests/benchmarks has 32 for each command."""
SHORT = ("night", "history add", "merge")


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.name in SHORT], ids=lambda each: each.name)
def test_after_a_signal_the_same_command_goes_on_and_nothing_is_lost_or_left(tmp_path, command):
    done = interrupt(command, tmp_path, SIGNALS, random.Random(1))
    assert done.signals == SIGNALS
    assert done.wrong == []
