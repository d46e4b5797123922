"""Which distribution has the module `onnxruntime`, and what it lacks for CUDA. Imports neither.

`onnxruntime` has the provider of the processor alone. `onnxruntime-gpu` has CUDA's too. Both have the same module, so a
machine has one of them. Where pip has both, the module is that of the one that was installed last, and its own file
says which one that is.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from rnnbench.backends.base import Lack
from rnnbench.backends.shared import NVIDIA_LIBRARIES, installed_versions

PROCESSOR, GPU = "onnxruntime", "onnxruntime-gpu"
INSTALL_CUDA = f"pip uninstall {PROCESSOR} && pip install 'rnnbench[onnxruntime-cuda]'"
_BUILT_AS = "onnxruntime/capi/build_and_package_info.py"
_PROVIDER = "onnxruntime/capi/libonnxruntime_providers_cuda.so"


def runtime_package() -> str:
    """The distribution that the module is from; `onnxruntime` where neither is installed."""
    installed = [name for name in (GPU, PROCESSOR) if _folder(name)]
    if len(installed) < 2:
        return installed[0] if installed else PROCESSOR
    return _built_as(installed[0]) or installed[0]


def cuda_versions() -> dict[str, str]:
    return installed_versions(NVIDIA_LIBRARIES) if runtime_package() == GPU else {}


def cuda_lack() -> Lack | None:
    """What the installed runtime lacks for CUDA; None where it has its provider."""
    package = runtime_package()
    if package == PROCESSOR:
        return Lack(f"{PROCESSOR} has the processor's provider alone, and CUDA's is in {GPU}", INSTALL_CUDA)
    folder = _folder(package)
    if folder is None or not (folder / _PROVIDER).is_file():
        return Lack(f"this build of {package} has no provider for CUDA", INSTALL_CUDA)
    return None


def built_for() -> int | None:
    """The major version of CUDA that the runtime was built for; None where its files do not say it."""
    named = re.search(r"^cuda_version = '(\d+)", _information(runtime_package()), re.MULTILINE)
    return int(named[1]) if named else None


def _folder(package: str) -> Path | None:
    """Where a distribution's modules are; None where it is not installed."""
    try:
        return Path(str(distribution(package).locate_file("")))
    except PackageNotFoundError:
        return None


def _built_as(package: str) -> str:
    """The name that the module gives itself; empty where it gives none that is known here."""
    named = re.search(r"^package_name = '([\w-]+)'", _information(package), re.MULTILINE)
    return named[1] if named and named[1] in (GPU, PROCESSOR) else ""


def _information(package: str) -> str:
    """What the module's own file says of its build; empty where there is no such file."""
    folder = _folder(package)
    try:
        return (folder / _BUILT_AS).read_text() if folder else ""
    except OSError:
        return ""
