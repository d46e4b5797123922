"""Devices: the hardware that programs run on. A kind of device is one file here, which declares a `KIND`.

`KINDS` has every kind by the name that case files use (`target.device`). A kind has the functions that measure on such
devices, the reasons why other figures cannot be measured, and the command that installs its driver. The other packages
use the kind and name no device. A `Device` is one device of a machine, as its driver describes it. A backend's probe
says which devices the backend can use.

To add a kind, add a module with a `KIND` to this folder. `docs/devices.md` says what is measured on which device.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.devices.device import Device, DeviceKind, Figure, RoofMeasurer, UnmeasuredError
    from rnnbench.devices.examined import ExaminedDevice, examine_devices
    from rnnbench.devices.kinds import KINDS
    from rnnbench.devices.nvml import VARIABLES, NoGpuError, first_gpu, newest_cuda

__getattr__, __all__ = lazy_names(__name__, __file__)
