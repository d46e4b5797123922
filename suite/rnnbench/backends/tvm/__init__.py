"""Apache TVM: Relax programs from the shared cell (`relax`) or an importer (`torch`, `onnx`), and a kernel (`tir`).

`backend` is the place to begin. It imports no TVM; the other modules do, and only `load` and `build` import them.

- `relax`: `relax_program` compiles what `relax_module`, `relax_loop` and `relax_primitives` write, by TVM's pipeline
  and the schedule in `schedule`. `relax_pass`, `fast_math` and `tiles` are passes that it runs. `relax_session` has the
  streams.
- `torch`, `onnx`: `imported` says what is supported, `imported_module` imports, `imported_program` has the streams.
- `tir`: `tir_program` and `tir_session`, for a kernel written by hand in this suite: `kernel`, `step`, `product`,
  `sums`, `byte_sums`, `sharing`, `activations` and `packing`. Its figures measure this suite's skill and not TVM's.
- `persistent`: `tir` on CUDA, a kernel that runs a whole call in one launch.
- On CUDA: `cuda_pipeline`, `cuda_libraries`, and `nvrtc`, which compiles TVM's source.
- For all: `framework` imports TVM, `vm_program` and `store` make and keep libraries, `buffers` has the arrays of calls,
  `relax_operations` and `llvm_ir` read what TVM made. `explanation` and `timing_tool` are behind `explain` and
  `doctor`.
"""

from __future__ import annotations

from rnnbench.backends.tvm.backend import TvmBackend

__all__ = ["TvmBackend"]
