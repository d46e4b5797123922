"""`rnnbench cache`, and what `run` and `check` say of what they took from it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

RUN = ("run", "tiny.yaml", "--backend=fake:honest", "--no-baseline", "--filter=chunk=2,state=stitched")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RNNBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RNNBENCH_CACHE_SIZE", "1MiB")
    return tmp_path / "cache"


def origins(folder):
    return [
        json.loads(line)["timing"]["build_origin"]
        for run in sorted((folder / "results").iterdir())
        for line in (run / "records.jsonl").read_text().splitlines()
    ]


@pytest.mark.proof
def test_a_second_run_builds_nothing_unless_it_is_told_to(rnnbench, folder, cache):
    first = rnnbench(*RUN).stdout
    second = rnnbench(*RUN).stdout
    assert "Built by earlier runs" not in first
    assert "which the build times are of: 1 program. With --rebuild they are built and timed again." in second
    rnnbench(*RUN, "--rebuild")
    assert origins(folder) == ["cold", "cached", "cold"]


@pytest.mark.proof
def test_a_time_in_no_calendar_is_a_dash(rnnbench, cache):
    """A clock may have been wrong, and a disk may keep any time."""
    rnnbench("check", "tiny.yaml", "--backend=fake:honest", "--filter=chunk=2,state=stitched", "--endurance=0")
    for seconds in (2**33, 2**40):
        for entry in cache.rglob("entry.json"):
            os.utime(entry, (seconds, seconds))
        assert "fake" in rnnbench("cache").stdout


@pytest.mark.parametrize("make", [Path.touch, lambda cache: cache.symlink_to(cache)], ids=["file", "loop"])
def test_a_cache_that_is_no_folder_is_a_mistake(rnnbench, cache, make):
    make(cache)
    assert f"{cache} is not a folder; RNNBENCH_CACHE names the folder" in rnnbench("cache", status=2).stderr


def test_the_cache_is_shown_and_cleared(rnnbench, cache):
    assert "0 B of 1.00 MiB" in rnnbench("cache").stdout
    rnnbench("check", "tiny.yaml", "--backend=fake:honest", "--filter=chunk=2,state=stitched", "--endurance=0")
    shown = rnnbench("cache").stdout
    assert str(cache) in shown
    assert "fake" in shown
    assert "references" in shown
    assert "entries removed" in rnnbench("cache", "--clear").stdout
    assert "0 B of 1.00 MiB" in rnnbench("cache").stdout
    assert not list(cache.glob("[!.]*"))


@pytest.mark.proof
def test_a_folder_that_cannot_be_written_is_a_warning_and_a_cold_run(rnnbench, folder, cache):
    cache.write_text("a file")
    assert "cannot be written" in rnnbench(*RUN).stderr
    assert origins(folder) == ["cold"]


def test_a_size_that_is_none_has_one_sentence_and_status_2(rnnbench, monkeypatch):
    monkeypatch.setenv("RNNBENCH_CACHE_SIZE", "much")
    assert "RNNBENCH_CACHE_SIZE is 'much'; expected a size" in rnnbench("cache", status=2).stderr
