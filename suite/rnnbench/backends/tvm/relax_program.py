"""Route `relax`: the module of a request, compiled to a library for Relax's virtual machine, and its program."""

from __future__ import annotations

from pathlib import Path

from rnnbench.backends.base import Request
from rnnbench.backends.shared import CUDA, of_one_step
from rnnbench.backends.tvm.framework import lanes
from rnnbench.backends.tvm.relax_module import relax_module
from rnnbench.backends.tvm.relax_session import RelaxSession
from rnnbench.backends.tvm.schedule import ROWS
from rnnbench.backends.tvm.tiles import OUTPUTS
from rnnbench.backends.tvm.vm_program import VmProgram, compiled

CUDA_NOTES = (
    "The pipeline is TVM's own for CUDA, with its default schedules (dlight). They compute float32 products in fused "
    "multiply-adds, and not in TF32.",
    "NVRTC compiles the kernels without --use_fast_math, which TVM would add: its tanh has 11 bits.",
)


class RelaxProgram(VmProgram):
    def open(self) -> RelaxSession:
        return RelaxSession(self, self.machine())


def build_relax(request: Request, cache: Path) -> RelaxProgram:
    """The program of a supported request. Raises BuildError."""
    stored = compiled(request, cache, relax_module, "authored", _notes(request.device))
    return RelaxProgram(request, stored, lambda: build_relax(of_one_step(request), cache))


def _notes(device: str) -> tuple[str, ...]:
    projection = "The projection of x is one product before the first step."
    if device == CUDA:
        return (*CUDA_NOTES, projection)
    return (
        f"The suite adds a schedule to TVM's pipeline: products keep up to {OUTPUTS // lanes()} vectors of {lanes()} "
        f"lanes and {ROWS} rows in registers, and all else is loops over vectors. The default leaves scalar loops.",
        f"Weights are stored in tiles of {OUTPUTS} columns, with columns of zeros where a product is not as wide.",
        projection,
    )
