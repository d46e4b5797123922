"""LiteRT, which was TensorFlow Lite: models converted by TensorFlow, run by an interpreter of a few megabytes."""

from rnnbench.backends.litert.backend import LitertBackend

__all__ = ["LitertBackend"]
