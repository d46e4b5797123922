"""OpenVINO on the CPU: ONNX graphs through its importer, and models in its own operators with native state.

`backend` is the place to begin. The route `onnx` imports a graph of `shared/onnx_graphs`; the route `opset` is written
here, by `opset_model` with `authored`, `sequence` and `nodes`. `file_model` is for users' files. `compile` compiles any
of them, and `runtime` has the streams, through the C API (`c_api`). `variables` reads and writes states that are kept
inside.

Each import of OpenVINO sends an event to its makers, in a thread of its own, and writes into the user's home folder. It
is imported as where its package `openvino-telemetry` is not installed: a name that is None in `sys.modules` raises
ImportError.
"""

import sys

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

from rnnbench.backends.openvino.backend import OpenVinoBackend  # noqa: E402 it must come after

__all__ = ["OpenVinoBackend"]
