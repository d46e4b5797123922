"""Signals to long commands and kills at random moments lose nothing and leave nothing (hours; docs/reliability.md).

The same command goes on. RNNBENCH_INTERRUPTS=N gives each command N blows, RNNBENCH_INTERRUPTED=night,site takes some
commands.
"""

from __future__ import annotations

import os
import random

import pytest
from interrupted_commands import BLOWS_EACH, COMMANDS, interrupt, summary

pytest.importorskip("duckdb")

BLOWS = int(os.environ.get("RNNBENCH_INTERRUPTS", BLOWS_EACH))
CHOSEN = os.environ.get("RNNBENCH_INTERRUPTED", "")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_signals_and_kills_lose_nothing_and_leave_nothing(tmp_path, command):
    if CHOSEN and command.name not in CHOSEN.split(","):
        pytest.skip(f"RNNBENCH_INTERRUPTED names {CHOSEN} alone")
    done = interrupt(command, tmp_path, BLOWS, random.Random(0))
    print(f"\n{summary({command.name: done})}")
    assert not done.wrong, "\n".join(done.wrong)
