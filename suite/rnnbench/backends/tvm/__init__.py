"""Apache TVM: kernels written in TensorIR (`tvm:tir`), and Relax programs compiled from the shared cell (`tvm:relax`).

`backend` imports no TVM; the modules below it do, and only `load` and `build` import them.
"""

from __future__ import annotations

from rnnbench.backends.tvm.backend import TvmBackend

__all__ = ["TvmBackend"]
