"""Devices: what programs run on. A kind of device is one file here, which declares a `KIND`.

`KINDS` has every kind by the name that case files use (`target.device`). A kind says what the suite must know before it
measures there: which figures it cannot measure on such a device, and how to install what is missing. A `Device` is one
device of a machine as its driver describes it. Which devices a backend can use, the backend's probe says.

To add a kind, add a module with a `KIND` to this folder. `docs/devices.md` says what is measured on which.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.devices.device import Device, DeviceKind, Figure
    from rnnbench.devices.kinds import KINDS
    from rnnbench.devices.nvml import VARIABLES, NoGpuError, first_gpu

_NAMES = {
    "device": (
        "Device",
        "DeviceKind",
        "Figure",
    ),
    "kinds": ("KINDS",),
    "nvml": (
        "VARIABLES",
        "NoGpuError",
        "first_gpu",
    ),
}
__all__ = [
    "KINDS",
    "VARIABLES",
    "Device",
    "DeviceKind",
    "Figure",
    "NoGpuError",
    "first_gpu",
]
__getattr__ = lazy_names(__name__, _NAMES)
