"""Fuzzed inputs are read, or refused with an error of the suite's own. tests/benchmarks reads a million of them."""

from __future__ import annotations

import pytest
from fuzz_subjects import SUBJECTS, unable_to_run
from fuzzer import fuzz
from quick_tests import runs_all

INPUTS = 60 if runs_all() else 25
HANGS_S = 20.0
"""CPU time that no honest reading takes, on a busy machine either. The proof in tests/benchmarks allows a second."""


@pytest.mark.parametrize("make", SUBJECTS, ids=lambda make: make.__name__)
def test_no_input_ends_in_a_traceback_or_hangs(make, tmp_path):
    with unable_to_run(tmp_path):
        done = fuzz(make(tmp_path), INPUTS, seed=0, slowest_s=HANGS_S)
    assert done.faults == {}
