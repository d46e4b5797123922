"""What the installed torch has and lacks for CUDA, told from its metadata and its files. Does not import torch."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

from rnnbench.backends.base import Lack

LIBRARY = "torch/lib/libtorch_cuda.so"
"""In wheels that are built with CUDA, and in no others."""
VERSION = "torch/version.py"
"""The file that says for which CUDA a wheel was built (`cuda: Optional[str] = '13.0'`)."""
INSTALL = "pip install --force-reinstall torch"
"""The default index has wheels for Linux with CUDA."""


def cuda_lack() -> Lack | None:
    """Raises PackageNotFoundError where torch is not installed."""
    package = distribution("torch")
    if Path(str(package.locate_file(LIBRARY))).exists():
        return None
    return Lack(f"the installed torch {package.version} is built without CUDA", INSTALL)


def built_for() -> int | None:
    """The major version of CUDA that torch was built for; None where its files do not say it."""
    try:
        source = Path(str(distribution("torch").locate_file(VERSION))).read_text()
    except OSError:
        return None
    named = re.search(r"^cuda\b[^=]*= *['\"](\d+)\.", source, re.MULTILINE)
    return int(named[1]) if named else None
