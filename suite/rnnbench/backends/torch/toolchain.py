"""What Inductor finds out in each process that compiles, of the C++ compiler and of itself, found out beforehand.

Inductor (2.13) tries in each process whether a program with the processor's vector instructions can be loaded. It also
preprocesses the headers that it has precompiled, to see whether they changed. The calls here are those of
`CppCodeCache.load_async` and of `AotCodeCompiler.compile`. It digests its own sources, and traces the patterns that its
passes look for in a joint graph. The patterns of later passes are left to each build: they differ where oneDNN is off.
Inductor keeps what it found in the process, so children of a process that has asked need not ask again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor import codecache
from torch._inductor.cpp_builder import CppBuilder, CppTorchDeviceOptions
from torch._inductor.cpu_vec_isa import VecISA, pick_vec_isa
from torch._inductor.fx_passes import joint_graph

from rnnbench.backends.torch.inductor import share_machine_files


def prepare_builds(route: str) -> None:
    """Find out what builds on this route for the processor need. An earlier build has precompiled the headers."""
    share_machine_files()
    {"compile": _prepare_compile, "aoti": _prepare_aoti}[route](pick_vec_isa())
    codecache.torch_key()
    joint_graph.lazy_init(torch.device("cpu"))


def _prepare_compile(isa: VecISA) -> None:
    cache = codecache.CppWrapperCodeCache
    options = {
        **cache.cpp_compile_command_flags,
        "device_type": "cpu",
        "extra_flags": (),
        "use_relative_path": False,
        "vec_isa": isa,
    }
    command = _command_line(CppTorchDeviceOptions(compile_only=False, min_optimize=False, **options))
    header = cache._get_uncompiled_header("cpu")
    codecache._precompile_header(header, command, min_optimize=False, **options)


def _prepare_aoti(isa: VecISA) -> None:
    command = repr(_command_line(CppTorchDeviceOptions(vec_isa=isa, device_type="cpu", aot_mode=True)))
    options = {
        "aot_mode": True,
        "device_type": "cpu",
        "use_mmap_weights": False,
        "use_mmap_weights_external": False,
        "use_relative_path": False,
        "vec_isa": isa,
    }
    wrapper, kernel = codecache._get_cpp_wrapper_header("cpu", aot_mode=True), codecache._get_cpp_prefix_header("cpu")
    codecache._precompile_header(wrapper, command, min_optimize=True, **options)
    codecache._precompile_header(kernel, command, **options)


def _command_line(options: Any) -> str:
    """The command by whose text Inductor tells its results apart."""
    line: str = CppBuilder(name="o", sources="i", BuildOption=options).get_command_line()
    return line
