"""The kinds of devices that the modules of this folder declare."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from rnnbench.devices.device import DeviceKind

_NO_KINDS = {
    *("cuda_driver", "cuda_kernels", "cuda_measuring", "cuda_session", "nvml", "rapl"),
    *("device", "examined", "kinds"),
}


def _declared() -> dict[str, DeviceKind]:
    """The declared kinds. Those of every machine come first, the others by name."""
    package = __name__.rpartition(".")[0]
    folder = import_module(package).__path__
    names = [module.name for module in iter_modules(folder) if module.name not in _NO_KINDS]
    kinds: list[DeviceKind] = [import_module(f"{package}.{name}").KIND for name in names]
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: (not kind.everywhere, kind.name))}


KINDS: Mapping[str, DeviceKind] = _declared()
"""All kinds of devices, by name."""
