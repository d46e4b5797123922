"""The folder of a program in the cache, and how a compiled module becomes the shared library in it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared import CUDA, program_folder
from rnnbench.backends.tvm import cuda_libraries, imported
from rnnbench.backends.tvm.framework import PACKAGES, target_of

LIBRARY = "program.so"
PARAMS = "params.bin"
"""The weights in the layout that a kernel of this suite reads. They are an argument of it."""


def folder(request: Request, cache: Path, **decisive: str) -> Path:
    """The folder of a request's program under `cache`. The program is for this machine's processor or GPU.

    `decisive` has what else decides the program, by name.
    """
    packages = (*PACKAGES, *imported.PACKAGES.get(request.route, ()))
    versions = {package: version(package) for package in packages}
    of_cuda = cuda_libraries.versions() if request.device == CUDA else {}
    return program_folder(request, cache, {"target": str(target_of(request.device)), **versions, **of_cuda, **decisive})


def export(executable: Any, folder: Path) -> None:
    """Link a compiled module into a library: by the C compiler where there is one, else by a bare linker."""
    from tvm.support.cc import get_cc

    linker = None if get_cc() else _bare_linker()
    try:
        executable.export_library(str(folder / LIBRARY), fcompile=linker)
    except RuntimeError as error:
        raise BuildError(f"linking the compiled program failed: {error}") from error


def _bare_linker() -> Callable[..., None]:
    """A linker call without a compiler's driver: programs use no C library, so `ld -shared` links them as well."""
    linker = next((path for name in ("ld", "ld.lld", "ld.gold", "lld") if (path := shutil.which(name))), None)
    if linker is None:
        raise BuildError(
            "TVM writes object files and needs a linker to load them: found neither a C compiler (g++, gcc, clang, cc; "
            "CXX and CC name another) nor ld or ld.lld. Install one, with `apt install binutils` or `gcc`"
        )

    def link(output: str, objects: list[str], **_: object) -> None:
        process = subprocess.run(
            [linker, "-shared", "-o", output, *objects], capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise BuildError(f"{linker} failed: {process.stderr}")

    return link
