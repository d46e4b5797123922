"""What speaks against a machine is said in a sentence, and nothing is said of one that is fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rnnbench.measure import control_groups, examine_machine, fitness
from rnnbench.measure.fitness import warnings

FIT: dict[str, Any] = {
    "usable_cores": 4,
    "load": 0.2,
    "steal": 0.0,
    "governor": "performance",
    "available": 8 << 30,
    "clock_cost_s": 5e-8,
    "clock_resolution_s": 1e-9,
    "temperature": 50.0,
    "threads": {},
    "scatter": {"arithmetic": 0.004, "L2": 0.02},
}


def test_nothing_is_said_of_a_fit_machine() -> None:
    assert list(warnings(FIT)) == []


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ({"usable_cores": 1}, "One core"),
        ({"cpu_quota": 1.5}, "the time of 1.5 cores"),
        ({"load": 3.0}, "load is 3.0"),
        ({"steal": 0.05}, "5.0 %"),
        ({"governor": "powersave"}, "'powersave'"),
        ({"available": 1 << 30}, "1024 MiB"),
        ({"clock_cost_s": 2e-6}, "2.0 µs"),
        ({"clock_resolution_s": 4e-3}, "steps of 4 ms"),
        ({"temperature": 97.0}, "97 °C"),
        ({"threads": {"OMP_NUM_THREADS": "8"}}, "OMP_NUM_THREADS=8"),
        ({"scatter": {"arithmetic": 0.004, "L2": 0.13}}, "differ by up to 13 %"),
        ({"scatter": None}, r"rnnbench[floor]"),
    ],
)
def test_each_fault_is_one_sentence(fact: dict[str, Any], said: str) -> None:
    (sentence,) = warnings({**FIT, **fact})
    assert said in sentence


def test_what_cannot_be_read_is_no_fault() -> None:
    unread = {key: value for key, value in FIT.items() if key not in ("governor", "temperature")}
    assert list(warnings({**unread, "steal": None})) == []


def test_this_machine_can_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitness, "WATCHED_S", 0.01)
    assert examine_machine().facts["usable_cores"] >= 1


def test_memory_is_free_as_far_as_the_container_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, box = tmp_path / "cgroup", tmp_path / "groups" / "box"
    own.write_text("0::/box\n")
    box.mkdir(parents=True)
    for name, content in (("memory.max", str(100 << 20)), ("memory.current", "0"), ("memory.stat", "inactive_file 0")):
        (box / name).write_text(content)
    monkeypatch.setattr(control_groups, "_OWN_GROUPS", own)
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(fitness, "WATCHED_S", 0.0)
    assert any("100 MiB of memory are free" in warning for warning in examine_machine().warnings)


def test_a_load_is_that_of_a_core() -> None:
    assert list(warnings({**FIT, "usable_cores": 8, "load": 1.9})) == []
    assert len(list(warnings({**FIT, "usable_cores": 2, "load": 0.6}))) == 1
