"""What the installed torch lacks for CUDA, told from its metadata and its files. Does not import torch."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

from rnnbench.backends.base import Lack

LIBRARY = "torch/lib/libtorch_cuda.so"
"""In wheels that are built with CUDA, and in no others."""
INSTALL = "pip install --force-reinstall torch"
"""The default index has wheels for Linux with CUDA."""


def cuda_lack() -> Lack | None:
    """Raises PackageNotFoundError where torch is not installed."""
    package = distribution("torch")
    if Path(str(package.locate_file(LIBRARY))).exists():
        return None
    return Lack(f"the installed torch {package.version} is built without CUDA", INSTALL)
