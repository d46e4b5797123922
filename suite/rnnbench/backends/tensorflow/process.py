"""What TensorFlow reads once in a process, when its first operation runs: its pools' sizes, and XLA's flags."""

from __future__ import annotations

from rnnbench.backends.base import BuildError
from rnnbench.backends.tensorflow import xla


def prepare_process(threads: int) -> None:
    """Size TensorFlow's pools, and give XLA its folder. Raises BuildError where the pools run, with another size."""
    import tensorflow as tf

    xla.exchange()
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError as error:
        message = f"threads={threads} must be set before TensorFlow runs anything in a process: {error}"
        raise BuildError(message) from error
