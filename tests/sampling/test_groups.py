"""Trials are sampled together where memory holds them, and otherwise in groups that share one common trial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.backends import Allocated
from rnnbench.backends.base import Artifact
from rnnbench.cases import Measure
from rnnbench.devices import KINDS, Device
from rnnbench.measure.blocks import Block
from rnnbench.measure.caches import eviction_bytes
from rnnbench.pipeline import not_sampled, record_of
from rnnbench.plan import examine
from rnnbench.sampling import groups as sampling_groups
from rnnbench.sampling.groups import MEMORY_SHARE, common_trial_of, device_holds, memory_of, split_by_memory
from rnnbench.sampling.interleaved import common_trial_figure
from rnnbench.stages import Built, Checked, Failure, ImportFigures, LoadFigures, PathSamples, Sampled

IMPORT, TRIAL = 100, 10
"""Bytes that an import takes, and that a trial adds."""
ARTIFACT = Artifact(
    digest="d", source_digest="s", nbytes=10, operations={}, lowered="looped 1", origin="authored", math="exact"
)


def checked(target="fake:honest", chunk=1, measure=Measure()):  # noqa: B008 frozen
    examined = examine(make_trial(target, chunk=chunk, measure=measure))
    built = Built(examined, ImportFigures(harness=1, imported=IMPORT, import_s=0.0))
    loaded = LoadFigures(None, 0.0, 0.0, run_peak=IMPORT + TRIAL, steady=IMPORT, artifact=ARTIFACT)
    return Checked(built, loaded)


def split(trials, available=None):
    return list(split_by_memory(trials, common_trial_of(trials), memory_of, available))


def names(groups):
    return [[(one.trial.target.backend, one.trial.strategy.chunk) for one in group.members] for group in groups]


def sampled(one, seconds=None):
    paths = {} if seconds is None else {"bound": PathSamples([[Block(0.0, 1, np.array([seconds]))]])}
    return Sampled(one, paths)


def test_trials_of_one_backend_share_its_import():
    trials = [checked(chunk=1), checked(chunk=2), checked("numpy:eager")]
    assert memory_of(trials) == 2 * IMPORT + 3 * TRIAL


def test_cold_calls_need_a_buffer_in_each_worker():
    cold = Measure(settings={"cold": 1.0})
    trials = [checked("fake:honest", 1, cold), checked("fake:honest", 2, cold), checked("numpy:eager", 1, cold)]
    assert memory_of(trials) == 2 * (IMPORT + eviction_bytes()) + 3 * TRIAL


def test_trials_that_memory_holds_stay_together():
    trials = [checked(chunk=chunk) for chunk in (1, 2, 3)]
    (group,) = split(trials, available=round((IMPORT + 3 * TRIAL) / MEMORY_SHARE))
    assert list(group.members) == trials


def test_trials_that_memory_does_not_hold_are_split_with_the_common_trial_in_every_group():
    trials = [*(checked(chunk=chunk) for chunk in (1, 2, 3)), checked("numpy:eager")]
    groups = split(trials, available=round((2 * IMPORT + 3 * TRIAL) / MEMORY_SHARE))
    assert names(groups) == [[("numpy", 1), ("fake", 1), ("fake", 2)], [("numpy", 1), ("fake", 3)]]
    assert all(group.common is trials[-1] for group in groups)


def test_a_trial_too_large_for_memory_is_in_a_group_with_the_common_trial_alone():
    groups = split([checked(chunk=chunk) for chunk in (1, 2, 3)], available=1)
    assert names(groups) == [[("fake", 1), ("fake", 2)], [("fake", 1), ("fake", 3)]]


def test_trials_that_their_device_does_not_hold_are_split():
    trials = [on_a_device(checked(chunk=chunk)) for chunk in (1, 2, 3)]
    groups = split_by_memory(trials, common_trial_of(trials), memory_of, 1 << 40, device_holds)
    assert names(groups) == [[("fake", 1), ("fake", 2)], [("fake", 1), ("fake", 3)]]


def test_each_worker_takes_some_of_a_device_beside_its_programs(monkeypatch):
    """As a context of CUDA's, which the measured bytes of a program do not contain."""
    monkeypatch.setattr(sampling_groups, "KINDS", {"cpu": replace(KINDS["cpu"], worker_memory=30)})
    called = (("fake:honest", 1), ("fake:honest", 2), ("numpy:eager", 1))
    one, same_worker, other = (on_a_device(checked(*which), of_trial=5) for which in called)
    assert device_holds([one, same_worker])
    assert not device_holds([one, other])


def test_a_device_whose_driver_tells_nothing_holds_all():
    assert device_holds([on_a_device(checked(), None) for _ in range(9)])
    assert device_holds([on_a_device(checked(), 100, of_trial=None) for _ in range(9)])


def test_where_the_driver_tells_nothing_the_runtime_s_own_count_decides():
    one = on_a_device(checked(), 100, of_trial=None)
    counted = replace(one, loaded=replace(one.loaded, allocated=Allocated(10, 40)))
    assert device_holds([counted])
    assert not device_holds([counted, counted])


def test_the_record_says_what_the_runtime_counted_or_why_it_failed_to():
    one = checked()
    counted = record_of(not_sampled(replace(one, loaded=replace(one.loaded, allocated=Allocated(10, 40)))))
    assert (counted.memory.allocated, counted.memory.allocated_peak) == (10, 40)
    failed = record_of(not_sampled(replace(one, loaded=replace(one.loaded, not_counted="no count"))))
    assert (failed.memory.allocated, failed.unmeasured["allocated"], failed.outcome) == (None, "no count", "ok")
    assert "allocated" not in counted.unmeasured


def on_a_device(one, memory=100, of_trial=20):
    """A trial on a device of so many bytes, of which it was seen to have some."""
    probe = replace(one.examined.probe, devices={"cpu": Device("a fake device", memory=memory)})
    examined = replace(one.examined, probe=probe)
    return replace(one, built=replace(one.built, examined=examined), device_memory=of_trial)


def test_the_baseline_s_first_trial_is_the_common_trial_or_else_the_first_trial():
    trials = [checked(chunk=1), checked(chunk=2)]
    assert common_trial_of(trials) is trials[0]
    baseline = [checked("numpy:eager", 1), checked("numpy:eager", 2)]
    assert common_trial_of([*trials, *baseline]) is baseline[0]


@pytest.mark.parametrize("count", [1, 3])
def test_without_a_limit_given_the_machine_s_memory_counts(count):
    trials = [checked(chunk=chunk) for chunk in range(1, count + 1)]
    (group,) = split(trials)
    assert list(group.members) == trials


def test_a_common_trial_s_figure_has_its_median_in_that_group():
    common = checked()
    figure = common_trial_figure(sampled(common, 2.0), 1, 3)
    assert (figure.trial, figure.group, figure.groups, figure.bound) == (common.trial.id, 1, 3, 2.0)


def test_a_common_trial_that_was_not_measured_has_no_figure():
    common = checked()
    assert common_trial_figure(sampled(common), 0, 2).bound is None
    crashed = replace(sampled(common, 2.0), failure=Failure("sample", "crashed", "died of SIGSEGV"))
    assert common_trial_figure(crashed, 0, 2).bound is None


def test_a_runtime_that_tells_no_peak_is_taken_by_what_it_has_now():
    one = on_a_device(checked(), 100, of_trial=None)
    now, peak = (replace(one, loaded=replace(one.loaded, allocated=Allocated(40, peak))) for peak in (None, 10))
    assert not device_holds([now, now])
    assert device_holds([peak, peak])


def test_what_a_process_imports_is_that_of_the_trial_that_imports_most():
    small, large = checked(chunk=1), checked(chunk=2)
    imports = replace(large.built.imports, imported=IMPORT + 50)
    loaded = replace(large.loaded, run_peak=IMPORT + 50 + TRIAL)
    large = replace(large, built=replace(large.built, imports=imports), loaded=loaded)
    assert memory_of([small, large]) == IMPORT + 50 + 2 * TRIAL
