"""OpenVINO on the CPU: ONNX graphs through its importer, and models in its own operators with native state."""

from rnnbench.backends.openvino.backend import OpenVinoBackend

__all__ = ["OpenVinoBackend"]
