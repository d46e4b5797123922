"""Trajectories that an earlier run computed are taken from the cache, and are what this run would compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.cache import CacheFolder
from rnnbench.conformance import KeptReferences, ReferenceTrajectories, kept_references

TRIAL = make_trial()


@pytest.fixture
def kept(tmp_path):
    return in_cache(tmp_path)


def in_cache(tmp_path):
    return KeptReferences(CacheFolder(tmp_path / "cache", 1 << 20))


def files(folder):
    return sorted(folder.glob("references/*/files/*.npz"))


def test_a_later_run_computes_nothing_and_has_the_same_numbers(tmp_path, kept):
    first = ReferenceTrajectories(TRIAL, tmp_path / "1", kept)
    second = ReferenceTrajectories(TRIAL, tmp_path / "2", kept)
    for trajectories in (first, second):
        trajectories.from_zeros()
        assert trajectories.ring_trajectory.settled_after >= 0
        assert trajectories.rounding_at(1).min() > 0
        kept.write()
    assert first.seconds > 0
    assert second.seconds == 0
    np.testing.assert_array_equal(first.from_zeros().y, second.from_zeros().y)
    np.testing.assert_array_equal(first.ring_trajectory.y, second.ring_trajectory.y)


def test_a_damaged_file_is_computed_again(tmp_path, kept):
    y = ReferenceTrajectories(TRIAL, tmp_path / "1", kept).from_zeros().y
    kept.write()
    (file,) = files(tmp_path / "cache")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    again = ReferenceTrajectories(TRIAL, tmp_path / "2", kept)
    np.testing.assert_array_equal(again.from_zeros().y, y)
    assert again.seconds > 0


def test_another_seed_model_or_suite_is_computed(tmp_path, kept, monkeypatch):
    ReferenceTrajectories(TRIAL, tmp_path / "1", kept).from_zeros()
    kept.write()
    smaller = next(iter(TRIAL.model.smaller()))
    for number, other in enumerate((replace(TRIAL, seed=1), replace(TRIAL, model=smaller)), 2):
        trajectories = ReferenceTrajectories(other, tmp_path / str(number), kept)
        trajectories.from_zeros()
        assert trajectories.seconds > 0
    monkeypatch.setattr(kept_references, "suite_digest", lambda packages: "others")
    changed = ReferenceTrajectories(TRIAL, tmp_path / "4", in_cache(tmp_path))
    changed.from_zeros()
    assert changed.seconds > 0


def test_what_took_long_is_kept_before_the_process_ends(tmp_path, kept, monkeypatch):
    monkeypatch.setattr(kept_references, "LONG_S", 0.0)
    ReferenceTrajectories(TRIAL, tmp_path / "1", kept).from_zeros()
    assert len(files(tmp_path / "cache")) == 1


def test_nothing_is_kept_once_the_suite_was_changed(tmp_path, kept, monkeypatch):
    ReferenceTrajectories(TRIAL, tmp_path / "1", kept).from_zeros()
    monkeypatch.setattr(kept_references, "seen_now", lambda *_: "another suite")
    kept.write()
    assert files(tmp_path / "cache") == []
