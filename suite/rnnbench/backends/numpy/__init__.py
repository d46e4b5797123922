"""NumPy as its users run it: a Python loop over the cell. It declares itself the baseline, which every table has.

`backend` is the place to begin. `network` is the program: calls that `recorder` recorded from the shared cell.
`program` has its streams, `weights_file` what a build keeps.
"""

from rnnbench.backends.numpy.backend import NumpyBackend

__all__ = ["NumpyBackend"]
