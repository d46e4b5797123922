"""The processor's energy, read from a folder that is laid out as the kernel lays out /sys/class/powercap."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rnnbench.devices import KINDS, UnmeasuredError, rapl

RANGE = 262_143_328_850
"""Microjoules after which a counter of a Xeon begins again."""


def zone(folder: Path, file: str, name: str, microjoules: int, range_: int = RANGE) -> Path:
    """A zone of powercap, with its counter."""
    (folder / file).mkdir()
    for key, value in (("name", name), ("max_energy_range_uj", range_), ("energy_uj", microjoules)):
        (folder / file / key).write_text(f"{value}\n")
    return folder / file / "energy_uj"


@pytest.fixture
def two_packages(tmp_path: Path) -> tuple[Path, Path]:
    """Two processors, with zones within them, a second way to the first one's counter, and that of the board."""
    first = zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 3_000_000)
    zone(tmp_path, "intel-rapl:0:1", "dram", 1_000_000)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 7_000_000)
    zone(tmp_path, "intel-rapl:2", "psys", 90_000_000)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1)
    (tmp_path / "intel-rapl").mkdir()
    return first, second


def test_the_energy_of_all_processors_is_counted_once(tmp_path: Path, two_packages: tuple[Path, Path]) -> None:
    counter = rapl.RaplCounter(tmp_path)
    first, second = two_packages
    assert counter.read() == 0.0
    first.write_text("6500000\n")
    second.write_text("7250000\n")
    assert counter.read() == pytest.approx(1.75)
    assert counter.source == "RAPL: package-0, package-1"


def test_a_counter_that_begins_again_goes_on(tmp_path: Path) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", RANGE - 400_000)
    counter = rapl.RaplCounter(tmp_path)
    file.write_text("600000\n")
    assert counter.read() == pytest.approx(1.0)
    file.write_text("1600000\n")
    assert counter.read() == pytest.approx(2.0)


@pytest.mark.parametrize("made", [False, True], ids=["no folder", "an empty folder"])
def test_a_machine_without_counters_says_so(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "powercap"
    if made:
        folder.mkdir()
    with pytest.raises(UnmeasuredError, match="has no energy counter of a processor, as in most virtual machines"):
        rapl.RaplCounter(folder)


def test_a_counter_that_only_root_may_read_says_how_to_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", 1)
    if os.geteuid() == 0:  # Root reads any file, so that the refusal is played.
        read = Path.read_text

        def refused(path: Path) -> str:
            if path == file:
                raise PermissionError(13, "Permission denied", str(path))
            return read(path)

        monkeypatch.setattr(Path, "read_text", refused)
    else:
        file.chmod(0)
    with pytest.raises(UnmeasuredError, match=rf"Only root may read {file}; allow it with: sudo chmod a\+r {file}"):
        rapl.RaplCounter(tmp_path)


def test_a_counter_that_holds_no_number_is_named(tmp_path: Path) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", 1)
    file.write_text("")
    with pytest.raises(UnmeasuredError, match=f"{file} cannot be read"):
        rapl.RaplCounter(tmp_path)


def test_the_processor_counts_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rapl, "FOLDER", tmp_path)
    with pytest.raises(UnmeasuredError, match=str(tmp_path)):
        KINDS["cpu"].open_energy()
