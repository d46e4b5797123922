"""Settings that TensorFlow reads once, when a process runs its first operation: sizes of thread pools, XLA's flags."""

from __future__ import annotations

from rnnbench.backends.base import BuildError
from rnnbench.backends.tensorflow import xla


def prepare_process(threads: int) -> None:
    """Set the sizes of TensorFlow's thread pools and XLA's folder.

    Raises BuildError where the pools already run with another size.
    """
    import tensorflow as tf

    xla.process_folder()
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError as error:
        message = f"threads={threads} must be set before TensorFlow runs anything in a process: {error}"
        raise BuildError(message) from error
