"""ONNX Runtime on the processor and on CUDA: its own RNN operators, and graphs authored from the shared cell.

`backend` is the place to begin. `shared/onnx_graphs` makes the graphs, `optimise` lets the runtime optimise one and
keeps the result, and `runtime` has the streams through `buffers`. `packages` says which distribution is installed.
"""

from rnnbench.backends.onnxruntime.backend import OnnxRuntimeBackend

__all__ = ["OnnxRuntimeBackend"]
