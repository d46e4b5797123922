"""Apache TVM: Relax programs from the shared cell (`relax`) or an importer (`torch`, `onnx`), and a kernel (`tir`).

`backend` is the place to begin. It imports no TVM; the other modules do, and only `load` and `build` import them.

- `relax`: `relax_module`, `relax_loop` and `relax_primitives` write a module, which TVM's pipeline compiles with the
  schedule in `schedule`. `relax_pass`, `fast_math` and `tiles` are passes that it runs.
- `torch`, `onnx`: `imported` says what is supported, `imported_module` imports, `imported_program` has the streams.
- `tir`: `kernel`, `step`, `product`, `sharing`, `activations` and `packing` are a kernel written by hand in this
  suite. Its figures measure this suite's skill and not TVM's.
- `persistent`: `tir` on CUDA, a kernel that runs a whole call in one launch.
- `relax_operations` and `llvm_ir` read what TVM made of a program; `store` keeps it.
"""

from __future__ import annotations

from rnnbench.backends.tvm.backend import TvmBackend

__all__ = ["TvmBackend"]
