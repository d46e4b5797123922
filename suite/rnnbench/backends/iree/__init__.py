"""IREE: RNNs authored as MLIR over linalg, compiled ahead of time to a VM module with native code inside."""

from rnnbench.backends.iree.backend import IreeBackend

__all__ = ["IreeBackend"]
