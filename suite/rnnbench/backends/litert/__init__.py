"""LiteRT, which was TensorFlow Lite: models converted by TensorFlow, run by an interpreter of a few megabytes.

`backend` is the place to begin. `convert` converts TensorFlow's traced function, or that of `fused` for the runtime's
own operator. `flatbuffer` reads what the converter made. `runtime` has the streams in an interpreter, and
`shared_weights` those through many copies of the cell.
"""

from rnnbench.backends.litert.backend import LitertBackend

__all__ = ["LitertBackend"]
