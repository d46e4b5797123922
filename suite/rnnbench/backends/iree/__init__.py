"""IREE: MLIR compiled ahead of time to a VM module with native code inside.

`backend` is the place to begin. The route `linalg` is written here: `program` writes the module of a request through
`emitter` and `values`. The other routes come through IREE's importers: `imported` says what each of them supports, and
`imported_onnx`, `imported_stablehlo` and `imported_torch` make their modules. `compile` runs the compiler, `lowered`
reads what it made, and `runtime` (for imported modules `imported_program`) runs the streams.
"""

from rnnbench.backends.iree.backend import IreeBackend

__all__ = ["IreeBackend"]
