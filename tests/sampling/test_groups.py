"""A group is sampled together where memory holds it, and else in parts that share its anchor."""

from __future__ import annotations

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.backends.base import Probe, Support
from rnnbench.cases.trial import Measure
from rnnbench.measure.caches import eviction_bytes
from rnnbench.measure.sampling import Block
from rnnbench.run.parts import MEMORY_SHARE, anchor_of, memory_of, note_anchor, split
from rnnbench.run.prepare import Findings

IMPORT, OWN = 100, 10
"""Bytes that an import takes, and that a trial adds."""


def found(target, chunk=1, measure=Measure()):  # noqa: B008 frozen
    findings = Findings(make_trial(target, chunk=chunk, measure=measure), Probe({}, {}), Support("native"))
    findings.started = {"imported": IMPORT}
    findings.loaded = {"run_peak": IMPORT + OWN}
    return findings


def names(parts):
    return [
        [(findings.trial.target.backend, findings.trial.strategy.chunk) for findings in part.trials] for part in parts
    ]


def test_trials_of_one_backend_share_its_import():
    group = [found("fake:honest", 1), found("fake:honest", 2), found("numpy:eager")]
    assert memory_of(group) == 2 * IMPORT + 3 * OWN


def test_cold_calls_need_a_buffer_in_each_worker():
    cold = Measure(settings={"cold": 1.0})
    group = [found("fake:honest", 1, cold), found("fake:honest", 2, cold), found("numpy:eager", 1, cold)]
    assert memory_of(group) == 2 * (IMPORT + eviction_bytes()) + 3 * OWN


def test_what_memory_holds_stays_together():
    group = [found("fake:honest", chunk) for chunk in (1, 2, 3)]
    (part,) = split(group, available=round((IMPORT + 3 * OWN) / MEMORY_SHARE))
    assert part.trials == group


def test_what_it_does_not_hold_is_parted_with_the_anchor_in_every_part():
    group = [found("fake:honest", chunk) for chunk in (1, 2, 3)] + [found("numpy:eager")]
    parts = list(split(group, available=round((2 * IMPORT + 3 * OWN) / MEMORY_SHARE)))
    assert names(parts) == [[("numpy", 1), ("fake", 1), ("fake", 2)], [("numpy", 1), ("fake", 3)]]
    assert parts[0].anchor is group[-1]
    assert parts[1].anchor is not group[-1]


def test_a_trial_too_large_for_memory_has_a_part_with_the_anchor_alone():
    parts = list(split([found("fake:honest", chunk) for chunk in (1, 2, 3)], available=1))
    assert names(parts) == [[("fake", 1), ("fake", 2)], [("fake", 1), ("fake", 3)]]


def test_without_the_baseline_the_first_is_the_anchor():
    group = [found("fake:honest", chunk) for chunk in (1, 2)]
    assert anchor_of(group) is group[0]


def test_each_part_is_told_what_the_anchor_took_in_it():
    group = [found("fake:honest", chunk) for chunk in (1, 2, 3)]
    parts = list(split(group, available=1))
    for seconds, part in zip((1.0, 2.0), parts, strict=True):
        part.anchor.blocks = {"bound": [[Block(0.0, 1, np.array([seconds]))]]}
    note_anchor(parts)
    assert [(f.anchor.group, f.anchor.groups, f.anchor.bound) for f in group] == [(0, 2, 1.0), (0, 2, 1.0), (1, 2, 2.0)]
    assert {findings.anchor.trial for findings in group} == {group[0].trial.id}


def test_an_anchor_that_was_not_measured_has_no_figure():
    group = [found("fake:honest", chunk) for chunk in (1, 2, 3)]
    parts = list(split(group, available=1))
    note_anchor(parts)
    assert group[2].anchor.bound is None


@pytest.mark.parametrize("count", [1, 3])
def test_a_group_in_one_part_needs_no_anchor(count):
    group = [found("fake:honest", chunk) for chunk in range(1, count + 1)]
    note_anchor(list(split(group)))
    assert all(findings.anchor is None for findings in group)
