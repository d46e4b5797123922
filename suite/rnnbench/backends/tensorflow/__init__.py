"""TensorFlow: RNNs as `tf.function`s over the shared cells, and as the layers of Keras; with XLA and without it.

`backend` is the place to begin. `traced_function` is this package's public face for converters: a request as a
`tf.Module` with one traced function.
"""

from rnnbench.backends.tensorflow.backend import TensorflowBackend

__all__ = ["TensorflowBackend"]
