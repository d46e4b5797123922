"""IREE: MLIR compiled ahead of time to a VM module with native code inside.

`backend` is the place to begin. The route `linalg` is written here: `program` writes the module of a request through
`primitives`, `emitter` and `values`. The other routes come through IREE's importers: `imported` says what each of them
supports, and `imported_onnx`, `imported_stablehlo` (`stablehlo_file` for users' files), `imported_torch` and
`imported_tensorflow` make their modules, some in a process apart (`imported_apart`). `compile` runs the compiler,
`lowered` reads what it made, and `runtime` (for imported modules `imported_program`) runs the streams.

Devices: `hal_devices` says what the compiler and the runtime are told of each, `transfers` reads results back, and
`cuda_context` and `cuda_target` are for CUDA. `explanation` and `timing_tool` are behind `explain` and `doctor`.
"""

from rnnbench.backends.iree.backend import IreeBackend

__all__ = ["IreeBackend"]
