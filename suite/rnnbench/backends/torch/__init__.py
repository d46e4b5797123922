"""PyTorch on the CPU: eager, TorchScript, torch.compile and AOTInductor. The package is named as its framework is.

`backend` is the place to begin. `export` is this package's public face for other compilers: torch.nn's RNNs as
functions that torch.export takes.
"""

from rnnbench.backends.torch.backend import TorchBackend

__all__ = ["TorchBackend"]
