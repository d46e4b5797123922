"""ONNX Runtime on the CPU: its own RNN operators, and graphs authored from the shared cell."""

from rnnbench.backends.onnxruntime.backend import OnnxRuntimeBackend

__all__ = ["OnnxRuntimeBackend"]
