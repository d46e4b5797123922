"""TensorFlow: RNNs as `tf.function`s over the shared cells, and as the layers of Keras; with XLA and without it.

`backend` is the place to begin; `support` says what each route supports. `cells` writes layers for `graph` and `xla`,
`keras_layers` is for the routes of Keras, `file_module` for users' files. `saved` keeps a program as a SavedModel,
`runtime` has the streams through it, and `executor` their fastest call. `lowered` and `xla` read what was compiled.

`traced_function` and `ml_program` are for adapters of converters and of other compilers, too: a request as a
`tf.Module` with one traced function, and as StableHLO whose state is in globals.
"""

from rnnbench.backends.tensorflow.backend import TensorflowBackend

__all__ = ["TensorflowBackend"]
