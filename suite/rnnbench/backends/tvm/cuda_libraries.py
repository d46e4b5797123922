"""What TVM needs for CUDA beside its own wheel: NVIDIA's libraries and headers, from wheels or from the system.

Nothing here imports TVM, and nothing starts CUDA. The driver is asked through NVML (`backends.shared.with_cuda`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from rnnbench.backends.base import Lack
from rnnbench.backends.shared import library_loads

INSTALL = "pip install 'rnnbench[tvm-cuda]'"
RUNTIME = "tvm/lib/libtvm_runtime_cuda.so"
"""In the wheel of apache-tvm: what loads kernels and calls CUDA. TVM's import leaves it out where it does not load."""
LIBRARIES = {"nvidia-cuda-runtime": "libcudart.so.13", "nvidia-cuda-nvrtc": "libnvrtc.so.13"}
"""By NVIDIA's wheel, the library that TVM calls. A toolkit of the system will do as well."""
BUILT_FOR = 13
"""The major version of CUDA of these libraries."""
BINDINGS = "cuda-bindings"
"""The package through which NVRTC is called."""
HEADERS = "nvidia-cuda-cccl"
"""The wheel with the headers that TVM's CUDA source includes (cuda/std)."""
VERSIONED = (BINDINGS, HEADERS, *LIBRARIES)
"""Packages whose versions decide a program."""
_FOLDER = Path("nvidia/cu13")
"""Where NVIDIA's wheels of CUDA 13 put their files."""


def lack() -> Lack | None:
    """What is missing of the libraries; None where all are here."""
    missing = next(_missing(), "")
    return Lack(f"{missing}; TVM needs it for CUDA", INSTALL) if missing else None


def _missing() -> Iterator[str]:
    if not _file("apache-tvm", Path(RUNTIME)):
        yield "the installed apache-tvm is a build without CUDA"
    if not _installed(BINDINGS):
        yield f"{BINDINGS} is not installed"
    for package, library in LIBRARIES.items():
        if not _file(package, _FOLDER / "lib" / library) and not library_loads(library):
            yield f"neither {package} is installed nor {library} found"
    if not include_folders():
        yield f"{HEADERS} is not installed"


def variables() -> Mapping[str, str]:
    """What lets a worker's loader find the libraries of the wheels."""
    folders = dict.fromkeys(
        str(found.parent)
        for package, library in LIBRARIES.items()
        if (found := _file(package, _FOLDER / "lib" / library))
    )
    if not folders:
        return {}
    return {"LD_LIBRARY_PATH": os.pathsep.join([*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}


def include_folders() -> tuple[Path, ...]:
    """The folders with the headers of `HEADERS`; none where it is not installed."""
    header = _file(HEADERS, _FOLDER / "include/cccl/cuda/std/cstdint")
    return (header.parents[2], header.parents[3]) if header else ()


def versions() -> dict[str, str]:
    """The versions of the installed packages that decide a program."""
    return {name: distribution(name).version for name in VERSIONED if _installed(name)}


def _installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _file(package: str, path: Path) -> Path | None:
    """A file of an installed package."""
    if not _installed(package):
        return None
    found = Path(str(distribution(package).locate_file(path)))
    return found if found.exists() else None
