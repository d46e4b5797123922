"""PyTorch on the CPU: eager, TorchScript, torch.compile and AOTInductor. The package is named as its framework is."""

from rnnbench.backends.torch.backend import TorchBackend

__all__ = ["TorchBackend"]
