"""A million fuzzed inputs: none ends in a traceback or takes a second of the processor (hours; docs/reliability.md).

RNNBENCH_FUZZ=N reads N inputs in all, RNNBENCH_FUZZ_SEED=N other ones.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from fuzz_subjects import SUBJECTS, unable_to_run
from fuzzer import fuzz

INPUTS = int(os.environ.get("RNNBENCH_FUZZ", "1000000"))
SEED = int(os.environ.get("RNNBENCH_FUZZ_SEED", "1"))
SHARES = {
    "case_files": 0.15,
    "expected_failures": 0.15,
    "records": 0.395,
    "run_infos": 0.25,
    "command_lines": 0.05,
    "stablehlo_files": 0.005,
}
"""A command line takes ten times as long as a line of records, and a module of StableHLO longer."""
MEMORY = Path("/dev/shm")


@pytest.mark.parametrize("make", SUBJECTS, ids=lambda make: make.__name__)
def test_no_input_ends_in_a_traceback_or_takes_a_second(make, tmp_path):
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as name:
        folder = Path(name)
        with unable_to_run(folder):
            done = fuzz(make(folder), round(INPUTS * SHARES[make.__name__]), SEED)
    print(
        f"\n{make.__name__}: {done.inputs:,} inputs, {done.accepted:,} accepted, {done.rate:,.0f} a second, "
        f"the slowest {done.slowest_s:.3f} s; {len(done.faults)} faults"
    )
    assert not done.faults, "\n".join(f"{where}: {what}" for where, what in done.faults.items())
