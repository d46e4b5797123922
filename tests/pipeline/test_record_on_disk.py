"""A record and the disk: the record comes before its samples, and a trial that failed because of the disk has none."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

import pytest
from harness_trials import SilentObserver, check_trial, context_in, make_trial
from waiting import slow_waits

from rnnbench.pipeline import check_trials, not_checked, not_sampled, run_trials
from rnnbench.pipeline.build_and_check import remember_cold_build
from rnnbench.pipeline.record import Journal
from rnnbench.plan import begin_run, examine, resume_run
from rnnbench.results import Store, StoreError, read_run
from rnnbench.stages import BuildFigures, Failure

pytestmark = pytest.mark.usefixtures("few_checks")

FULL = "OSError: [Errno 28] No space left on device: '/x'"
BROKEN = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
SENTENCES = (FULL, "OSError: [Errno 27] File too large", "ld: final link failed: No space left on device")


@pytest.mark.parametrize("outcome", ["run-failed", "build-failed", "crashed"])
def test_a_trial_that_fails_while_the_disk_is_full_has_no_record_and_is_done_again(tmp_path, monkeypatch, outcome):
    trial = make_trial()
    plan = begin_run([trial], Store(tmp_path))
    failed = replace(not_sampled(not_checked(examine(trial))), failure=Failure("build", outcome, "killed"))
    monkeypatch.setattr("rnnbench.pipeline.record.error_of_disk", lambda folder: BROKEN)
    with pytest.raises(StoreError, match=r"cannot write in .*No space left on device; .* failed meanwhile: killed"):
        Journal(plan, SilentObserver()).write(failed)
    assert resume_run(plan.folder).trials == (trial,)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_worker_that_speaks_of_a_full_disk_fails_its_own_trial_alone(tmp_path, sentence):
    """The program has a limit of its own, or lies: the suite's disk has room."""
    trials = [make_trial(), make_trial("fake:build-fails")]
    plan = begin_run(trials, Store(tmp_path))
    journal = Journal(plan, SilentObserver())
    for trial in trials:
        failed = replace(not_sampled(not_checked(examine(trial))), failure=Failure("build", "build-failed", sentence))
        assert journal.write(failed).reason == sentence
    assert not resume_run(plan.folder).trials


def test_a_disk_that_is_full_ends_a_check_with_what_was_finished(tmp_path, monkeypatch):
    """Of two threads one meets it; the other's trial would take an hour."""
    monkeypatch.setattr("rnnbench.pipeline.record.error_of_disk", lambda folder: BROKEN)
    trials = [make_trial("fake:build-hangs"), make_trial("fake:build-fails")]
    plan = begin_run(trials, Store(tmp_path))
    with pytest.raises(StoreError, match="No space left"):
        check_trials(plan, SilentObserver(), 2)
    assert not read_run(plan.folder).records


def test_of_two_threads_that_end_a_worker_one_alone_waits_for_it(tmp_path, monkeypatch):
    waited = slow_waits(monkeypatch)
    monkeypatch.setattr("rnnbench.pipeline.record.error_of_disk", lambda folder: BROKEN)
    plan = begin_run([make_trial("fake:build-hangs"), make_trial("fake:build-fails")], Store(tmp_path))
    with pytest.raises(StoreError, match="No space left"):
        check_trials(plan, SilentObserver(), 2)
    assert waited
    assert len(waited) == len(set(waited))


def test_samples_that_cannot_be_written_lose_no_record(tmp_path, monkeypatch):
    plan = begin_run([make_trial()], Store(tmp_path))

    def full(*_):
        raise StoreError("cannot write samples")

    monkeypatch.setattr("rnnbench.pipeline.record.save_samples", full)
    with pytest.raises(StoreError, match="samples"):
        run_trials(plan, SilentObserver())
    assert [record.outcome for record in read_run(plan.folder).records] == ["ok"]
    assert not resume_run(plan.folder).trials


def test_a_record_that_does_not_fit_leaves_no_half_line(tmp_path, monkeypatch):
    plan = begin_run([make_trial(chunk=1), make_trial(chunk=4)], Store(tmp_path))
    journal = Journal(plan, SilentObserver())
    one, other = (not_sampled(not_checked(examine(trial))) for trial in plan.trials)
    journal.write(one)
    before = (plan.folder / "records.jsonl").read_bytes()
    write = os.write

    def fills(descriptor, data):
        if len(data) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", fills)
    with pytest.raises(StoreError, match="No space left"):
        journal.write(other)
    assert (plan.folder / "records.jsonl").read_bytes() == before


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda _: b'{"origin": "co', lambda _: b"[]", lambda text: text.replace(b"0.", b"9.", 1)]
)
def test_damaged_figures_of_a_build_are_left_out(tmp_path, damage):
    context, trial = context_in(tmp_path), make_trial()
    check_trial(trial, context)
    (file,) = context.folders.artifacts.glob("*.build.json")
    cached = BuildFigures("cached")
    assert remember_cold_build(cached, trial, context.folders).origin == "cold"
    written = file.read_bytes()
    assert damage(written) != written
    file.write_bytes(damage(written))
    assert remember_cold_build(cached, trial, context.folders) == cached
