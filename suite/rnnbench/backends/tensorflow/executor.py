"""The least that a call of a ConcreteFunction needs from Python: TensorFlow's private entry point, or the function."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

Call = Callable[[list[Any]], list[Any]]
"""From flat arguments, captured ones last, to flat results."""


ENTRY_POINT = "TFE_Py_Execute"
"""Where a public call ends up (TensorFlow 2.21)."""


def executor(function: Any) -> Call:
    """The private way where this TensorFlow has it, and else the public one."""
    return _private(function) if has_private_way(function) else _public(function)


def has_private_way(function: Any) -> bool:
    """Whether the private way is there and takes what it took in 2.21: seen by passing a number through it."""
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    number = tf.constant(1.0)
    try:
        eager, run = context.context(), getattr(pywrap_tfe, ENTRY_POINT)
        attributes = ("T", number.dtype.as_datatype_enum)
        (same,) = run(eager._handle, eager.device_name, "Identity", [number], attributes, 1)
        _private(function)
    except Exception:  # noqa: BLE001 an entry point that has become another one may raise anything
        return False
    return bool(same.numpy() == number.numpy())


def _private(function: Any) -> Call:
    """The entry point that a public call comes to; what this leaves out is packing and checking.

    The attributes carry the options of a public call: without them a graph runs as it was traced, and XLA compiles it
    anew; either is another program.
    """
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    eager = context.context()
    handle, device, run = eager._handle, eager.device_name, getattr(pywrap_tfe, ENTRY_POINT)
    inference = function._inference_function  # which lives as long as this is held: its name dies with it
    name, results = inference.name.decode(), len(function.function_type.flat_outputs)
    attributes = tuple(chain.from_iterable(eager.function_call_options.as_attrs().items()))

    def call(arguments: list[Any]) -> list[Any]:
        outputs: list[Any] = run(handle, device, name, arguments, attributes, results)
        return outputs

    return call


def _public(function: Any) -> Call:
    """The concrete function itself, which has the captured arguments already."""
    own = len(function.inputs) - len(function.captured_inputs)

    def call(arguments: list[Any]) -> list[Any]:
        return list(function(*arguments[:own]))

    return call
