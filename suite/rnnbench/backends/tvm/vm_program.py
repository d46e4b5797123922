"""Programs of the routes that use Relax's virtual machine: an IRModule is compiled to a library, which is loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rnnbench.backends.base import Artifact, OperationStage, Origin, Program, ProgramFiles, Request
from rnnbench.backends.shared import CUDA, ChunkedProgram, Stored, load_or_build
from rnnbench.backends.shared.onnx_graphs import lowered_or_given
from rnnbench.backends.tvm import nvrtc, store
from rnnbench.backends.tvm.buffers import memory_on
from rnnbench.backends.tvm.framework import import_tvm, lanes, target_of
from rnnbench.backends.tvm.relax_operations import FunctionCounts, lowered, operations
from rnnbench.backends.tvm.schedule import pipeline

POLYNOMIAL = "fast_"
"""In the names of kernels with a polynomial (`fast_math.py`, which programs for CUDA do without)."""


class VmProgram(ChunkedProgram):
    """A loaded library, with the weights in it."""

    def __init__(self, request: Request, stored: Stored, build_tail: Callable[[], Program]) -> None:
        super().__init__(request, stored.artifact, stored.cached, build_tail)
        path = stored.folder / store.LIBRARY
        self.files = ProgramFiles((path,))
        if request.device == CUDA:
            nvrtc.use_kernels(stored.folder, _architecture())
            self.files = ProgramFiles((path, stored.folder / nvrtc.KERNELS))
        self.library = import_tvm().runtime.load_module(str(path))

    def machine(self) -> Any:
        """A virtual machine for one stream."""
        return import_tvm().relax.VirtualMachine(self.library, memory_on(self.request.device).device)


def compiled_module(source: Any, device: str) -> tuple[Any, Any]:
    """The executable of a module for a device, and the module as it left the pipeline. Raises BuildError."""
    final: list[Any] = []
    target = target_of(device)
    if device == CUDA:
        from rnnbench.backends.tvm.cuda_pipeline import cuda_pipeline

        nvrtc.use_nvrtc(_architecture())
        passes = cuda_pipeline(target, final.append)
    else:
        passes = pipeline(target, lanes(), final.append)
    executable = import_tvm().compile(source, target=target, relax_pipeline=passes)
    return executable, final[0]


def _architecture() -> str:
    """The architecture of this machine's GPU, such as `sm_90`. Raises BuildError if there is none."""
    return str(target_of(CUDA).attrs["arch"])


def compiled(
    request: Request,
    cache: Path,
    module: Callable[[Request], tuple[Any, Mapping[str, FunctionCounts]]],
    origin: Origin,
    notes: tuple[str, ...],
) -> Stored:
    """The library of the module that `module` makes of a request, with what each function of it has, by name."""

    def build(folder: Path) -> Artifact:
        source, written = module(request)
        executable, final = compiled_module(source, request.device)
        store.export(executable, folder)
        if request.device == CUDA:
            nvrtc.keep_kernels(executable, folder, _architecture())
        weights = request.weights.digest(request.model)
        compiled = operations(final)
        return Artifact(
            source_digest=hashlib.sha256(f"{source.script()}{weights}".encode()).hexdigest(),
            operations={OperationStage.INPUT: operations(source), OperationStage.COMPILED: compiled},
            lowered=lowered_or_given(request, lowered(final, written, request.strategy.time)),
            origin=origin,
            math="approximate" if any(POLYNOMIAL in name for name in compiled) else "exact",
            flags=(str(target_of(request.device)), *(nvrtc.FLAGS if request.device == CUDA else ())),
            notes=notes,
        )

    return load_or_build(store.folder(request, cache), build)
