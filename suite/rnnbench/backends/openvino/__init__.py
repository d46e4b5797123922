"""OpenVINO on the CPU: ONNX graphs through its importer, and models in its own operators with native state.

`backend` is the place to begin. The route `onnx` imports a graph of `shared/onnx_graphs`; the route `opset` is written
here, by `opset_model` with `authored`, `sequence` and `nodes`. `file_model` is for users' files. `compile` compiles any
of them, and `runtime` has the streams, through the C API (`c_api`). `variables` reads and writes states that are kept
inside.
"""

from rnnbench.backends.openvino.backend import OpenVinoBackend

__all__ = ["OpenVinoBackend"]
