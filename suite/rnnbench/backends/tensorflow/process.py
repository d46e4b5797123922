"""Settings that TensorFlow reads once, when a process runs its first operation: devices, thread pools, XLA's flags."""

from __future__ import annotations

from typing import Any

from rnnbench.backends.base import BuildError
from rnnbench.backends.shared import CUDA
from rnnbench.backends.tensorflow import xla

WHICH_LIBRARY = "TF_CPP_MIN_LOG_LEVEL=0 python -c 'import tensorflow; tensorflow.config.list_physical_devices()'"
"""The command that shows what TensorFlow could not load. Workers do not: the level of their log leaves it out."""


REMAPPING = {"remapping": False}
"""Without Grappler's pass that joins a product and the bias after it into a kernel of oneDNN's, which is slower for one
row. It is an option of `tf.config.optimizer`, for the whole process."""


def prepare_process(threads: int, device: str = "cpu") -> None:
    """Set the device, the sizes of TensorFlow's thread pools, and XLA's folder.

    Raises BuildError where the pools already run with another size, and where there is no GPU that was asked for.
    """
    import tensorflow as tf

    xla.process_folder()
    try:
        _set_device(tf, device)
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError as error:
        message = f"threads={threads} must be set before TensorFlow runs anything in a process: {error}"
        raise BuildError(message) from error


def _set_device(tf: Any, device: str) -> None:
    """TensorFlow runs what it can on the first GPU that is visible, and all else on the processor."""
    if device != CUDA:
        tf.config.set_visible_devices([], "GPU")
        tf.config.optimizer.set_experimental_options(REMAPPING)
        return
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        raise BuildError(
            "TensorFlow finds no GPU and would compute on the processor: a library of CUDA or cuDNN is missing, or is "
            f"of another version. It says which: {WHICH_LIBRARY}"
        )
    if len(gpus) > 1:  # TensorFlow would start the others too, and fail where one of them has no memory left.
        tf.config.set_visible_devices(gpus[:1], "GPU")
    tf.config.experimental.enable_tensor_float_32_execution(False)
