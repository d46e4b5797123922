"""OpenVINO on the CPU: ONNX graphs through its importer, and models in its own operators with native state.

`backend` is the place to begin. The route `onnx` imports a graph of `shared/onnx_graphs`; the route `opset` is written
here, by `opset_model`. `compile` compiles either, and `runtime` has the streams.
"""

from rnnbench.backends.openvino.backend import OpenVinoBackend

__all__ = ["OpenVinoBackend"]
