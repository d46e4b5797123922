"""Trials that are compared are one group."""

from __future__ import annotations

import dataclasses

from harness_trials import make_trial

from rnnbench.plan.workload_groups import group_by_workload, workload_of


def test_trials_of_one_workload_are_a_group_with_small_chunks_first():
    four, one, other = make_trial(chunk=4), make_trial("fake:wrong-bound", chunk=1), make_trial(chunk=2)
    other = dataclasses.replace(other, batch=2)
    assert group_by_workload([four, other, one], lambda trial: trial) == [[one, four], [other]]
    assert workload_of(four) == workload_of(one) != workload_of(other)


def test_int8_is_sampled_in_turn_with_float32_and_with_no_other_type():
    plain, int8, half = (
        dataclasses.replace(make_trial(), dtype=dtype) for dtype in ("float32", "int8_dynamic", "bfloat16")
    )
    assert workload_of(plain) == workload_of(int8) != workload_of(half)
