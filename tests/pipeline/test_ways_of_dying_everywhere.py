"""A few ways of dying, each in one stage of a check. tests/benchmarks has all ways, in all stages."""

from __future__ import annotations

import pytest
from dying_runs import die_together

pytestmark = pytest.mark.usefixtures("few_checks")

STAGES = ("build", "load", "check")
WAYS = (
    *("str-exits", "odd-name", "thousand-causes", "closes-its-output", "replies-twice", "a-daemon"),
    *("deletes-its-folder", "returns-what-raises"),
)
HARSH = [
    ("import", "grows"),
    ("build", "os-exit-0"),
    ("load", "dies-while-a-child-holds-the-channel"),
    ("check", "writes-half-a-line"),
]
"""After each of these the worker that forks a child for each trial is started anew."""


def test_each_way_has_its_outcome_and_harms_no_other_trial(tmp_path):
    dying = [*((STAGES[place % len(STAGES)], way) for place, way in enumerate(WAYS)), *HARSH]
    assert die_together(dying, tmp_path, timed=False).mistakes(dying) == []


@pytest.mark.proof
def test_what_a_sampled_trial_leaves_in_its_process_harms_no_other_trial(tmp_path):
    """They share the process with a healthy one."""
    dying = [("prepare", way) for way in ("closes-its-output",)]
    assert die_together(dying, tmp_path).mistakes(dying) == []
