"""The fastest call of a ConcreteFunction from Python: TensorFlow's private entry point, or else the function itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

Call = Callable[[list[Any]], list[Any]]
"""Takes flat arguments, captured ones last, and returns flat results."""

ENTRY_POINT = "TFE_Py_Execute"
"""The function that a public call ends in (TensorFlow 2.21)."""


def executor(function: Any) -> Call:
    """The private call where this TensorFlow has it, else the public one."""
    return _private(function) if has_private_call(function) else _public(function)


def has_private_call(function: Any) -> bool:
    """Whether the entry point exists and takes the arguments of 2.21. It is tested by passing a number through it."""
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    number = tf.constant(1.0)
    try:
        eager, run = context.context(), getattr(pywrap_tfe, ENTRY_POINT)
        attributes = ("T", number.dtype.as_datatype_enum)
        (same,) = run(eager._handle, eager.device_name, "Identity", [number], attributes, 1)
        _private(function)
    except Exception:  # noqa: BLE001 a changed entry point may raise anything
        return False
    return bool(same.numpy() == number.numpy())


def _private(function: Any) -> Call:
    """The entry point that a public call ends in, without the packing and the checks before it.

    The attributes have the options of a public call. Without them it would be another program: a graph would run as it
    was traced, and XLA would compile again.
    """
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    eager = context.context()
    handle, device, run = eager._handle, eager.device_name, getattr(pywrap_tfe, ENTRY_POINT)
    inference = function._inference_function  # the name is valid only while this object exists
    name, results = inference.name.decode(), len(function.function_type.flat_outputs)
    attributes = tuple(chain.from_iterable(eager.function_call_options.as_attrs().items()))

    def call(arguments: list[Any]) -> list[Any]:
        outputs: list[Any] = run(handle, device, name, arguments, attributes, results)
        return outputs

    return call


def waiting(function: Any, device: str) -> Callable[[], None]:
    """What returns once a device has done the work that was given to it.

    It is the operation of `tf.test.experimental.sync_devices`, on the one device.
    """
    import tensorflow as tf

    if not has_private_call(function):
        wait: Callable[[], None] = tf.test.experimental.sync_devices
        return wait
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    handle, run = context.context()._handle, getattr(pywrap_tfe, ENTRY_POINT)
    (name,) = [
        logical.name for logical in tf.config.list_logical_devices() if logical.name.endswith(f"device:{device}")
    ]
    return partial(run, handle, name, "SyncDevice", [], (), 0)


def _public(function: Any) -> Call:
    """The concrete function itself, which adds the captured arguments."""
    uncaptured = len(function.inputs) - len(function.captured_inputs)

    def call(arguments: list[Any]) -> list[Any]:
        return list(function(*arguments[:uncaptured]))

    return call
