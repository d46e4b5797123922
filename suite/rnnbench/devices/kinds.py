"""The kinds of devices that the modules of this folder declare."""

from __future__ import annotations

from collections.abc import Mapping

from rnnbench.devices.device import DeviceKind
from rnnbench.lazy import declared


def _declared() -> dict[str, DeviceKind]:
    """The declared kinds. Those of every machine come first, the others by name."""
    kinds: list[DeviceKind] = list(declared("rnnbench.devices", "KIND"))
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: (not kind.everywhere, kind.name))}


KINDS: Mapping[str, DeviceKind] = _declared()
"""All kinds of devices, by name."""
