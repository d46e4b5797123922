"""The processor's energy, from RAPL's counters in /sys/class/powercap.

Source: Documentation/power/powercap/powercap.rst of the Linux kernel. `energy_uj` counts microjoules, and starts again
at 0 after `max_energy_range_uj`. Since 2020 only root may read it (CVE-2020-8694).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rnnbench.devices.device import UnmeasuredError

FOLDER = Path("/sys/class/powercap")
PACKAGE = "package"
"""The beginning of the names of whole processors' zones. Zones within them are parts of their energy, and `psys` is the
whole board."""
BLOCK_S = 1.0
"""Seconds of a block. The counters are updated about once a millisecond."""


class RaplCounter:
    """The energy of all processors of the machine together: cores, caches and memory controllers, without memory."""

    block_s = BLOCK_S

    def __init__(self, folder: Path = FOLDER) -> None:
        zones = _packages(folder)
        if not zones:
            raise UnmeasuredError(f"{folder} has no energy counter of a processor, as in most virtual machines.")
        self._zones = [_Zone(zone) for zone in zones]
        self.source = "RAPL: " + ", ".join(zone.name for zone in self._zones)

    def read(self) -> float:
        """Joules since this object was made. Each counter may start again at most once between two readings."""
        return sum(zone.read() for zone in self._zones) * 1e-6


def open_rapl() -> RaplCounter:
    """Open the processor's counters. Raises UnmeasuredError if there are none, or if they cannot be read."""
    return RaplCounter(FOLDER)


class _Zone:
    """One counter, in microjoules."""

    def __init__(self, folder: Path) -> None:
        self.name = (folder / "name").read_text().strip()
        self._file = folder / "energy_uj"
        self._range = _number(folder / "max_energy_range_uj")
        self._last = _number(self._file)
        self._total = 0

    def read(self) -> int:
        now = _number(self._file)
        self._total += now - self._last if now >= self._last else now + self._range - self._last
        self._last = now
        return self._total


def _packages(folder: Path) -> list[Path]:
    """One zone per processor. Some processors have a second zone for the same counter, `intel-rapl-mmio`."""
    zones = {}
    for zone in sorted(folder.glob("*:*")):
        with suppress(OSError):
            zones[(zone / "name").read_text().strip()] = zone
    return [zone for name, zone in zones.items() if name.startswith(PACKAGE)]


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except PermissionError as error:
        raise UnmeasuredError(f"Only root may read {file}; allow it with: sudo chmod a+r {file}") from error
    except (OSError, ValueError) as error:
        raise UnmeasuredError(f"{file} cannot be read: {error}") from error
