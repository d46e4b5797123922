"""TensorFlow: RNNs as `tf.function`s over the shared cells, and as the layers of Keras; with XLA and without it."""

from rnnbench.backends.tensorflow.backend import TensorflowBackend

__all__ = ["TensorflowBackend"]
