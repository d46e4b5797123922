"""TVM's CUDA source, compiled by NVRTC in the build. TVM would do so when it loads the library, with `--use_fast_math`.

With that flag, tanh is `tanh.approx.f32`, whose relative error is up to 2⁻¹¹, and denormals are zero. Without it, the
functions are CUDA's (1 to 2 ulp), and no product is in TF32. Source: CUDA C++ Programming Guide, "Mathematical
Functions"; PTX ISA, "tanh".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnbench.backends.base import BuildError
from rnnbench.backends.tvm.cuda_libraries import include_folders

FLAGS = ("-default-device", "--fmad=true")
"""NVRTC's, beside the architecture and the folders of headers. The second is its default."""
CALLBACK = "tvm_callback_cuda_compile"
"""The function by which TVM's runtime compiles CUDA source."""
SOURCE, KERNELS = "kernels.cu", "kernels.cubin"
"""The kernels of a program, in its folder: as TVM writes them, and as the GPU runs them."""
_kernels: dict[tuple[str, str], bytes] = {}
"""Machine code that is known in this process, by the digest of its source and the architecture."""


def use_nvrtc(arch: str) -> None:
    """From now on, TVM gets machine code for this architecture (`sm_90`) from here, at a build and at a load."""
    import tvm_ffi

    tvm_ffi.register_global_func(CALLBACK, lambda source: _machine_code(str(source), arch), override=True)


def keep_kernels(executable: Any, folder: Path, arch: str) -> None:
    """Compile the kernels of a program into its folder. Raises BuildError."""
    source = source_of(executable)
    (folder / KERNELS).write_bytes(_machine_code(source, arch))
    (folder / SOURCE).write_text(source, encoding="utf-8")


def use_kernels(folder: Path, arch: str) -> None:
    """From now on, TVM gets the machine code in this folder for the source in it."""
    _kernels[_digest((folder / SOURCE).read_text(encoding="utf-8")), arch] = (folder / KERNELS).read_bytes()
    use_nvrtc(arch)


def _machine_code(source: str, arch: str) -> bytes:
    key = _digest(source), arch
    if key not in _kernels:
        _kernels[key] = compiled(source, arch)
    return _kernels[key]


def source_of(executable: Any) -> str:
    """The kernels of a compiled module, as TVM writes them in CUDA."""
    (source,) = (module.inspect_source() for module in _modules(executable.mod) if module.kind == "cuda")
    return str(source)


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _modules(module: Any) -> Iterator[Any]:
    """The module and all that it imports."""
    yield module
    for imported in module.imports:
        yield from _modules(imported)


def compiled(code: str, arch: str) -> bytes:
    """Machine code for `sm_90`, PTX for `compute_90`. Raises BuildError with NVRTC's messages."""
    from cuda.bindings import nvrtc

    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(code.encode(), b"tvm_kernels.cu", 0, None, None))
    folders = [f"-I{folder}" for folder in include_folders()]
    options = [option.encode() for option in (f"--gpu-architecture={arch}", *FLAGS, *folders)]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = _bytes(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        errors = [line[:300] for line in log.decode(errors="replace").splitlines() if "error" in line]
        raise BuildError("\n".join([f"NVRTC failed for {arch}: {result.name}", *errors[:4]]))
    if arch.startswith("compute_"):
        return _bytes(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    return _bytes(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)


def _bytes(nvrtc: Any, program: Any, size_of: Any, fill: Any) -> bytes:
    data = b" " * int(_checked(nvrtc, size_of(program)))
    _checked(nvrtc, (*fill(program, data), None))
    return data


def _checked(nvrtc: Any, answer: tuple[Any, Any]) -> Any:
    result, value = answer
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildError(f"NVRTC: {result.name}")
    return value
