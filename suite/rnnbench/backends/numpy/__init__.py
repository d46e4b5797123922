"""NumPy as its users run it: a Python loop over the cell. The baseline that every table has."""

from rnnbench.backends.numpy.backend import NumpyBackend

__all__ = ["NumpyBackend"]
