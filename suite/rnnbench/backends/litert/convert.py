"""A request as a flatbuffer: TensorFlow converts a module. Only this part and `fused.py` need TensorFlow."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from rnnbench.backends.base import BuildError, Request


def convert(request: Request) -> bytes:
    """The model, with the signature `step`; and with `get_state` and `set_state` where its state is in variables.

    Raises BuildError with the converter's message.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    from rnnbench.backends.tensorflow.traced_function import prepare_process

    prepare_process(request.threads)
    module = _module(request)
    names = [name for name in ("step", "get_state", "set_state") if hasattr(module, name)]
    signatures = {name: getattr(module, name).get_concrete_function() for name in names}
    with tempfile.TemporaryDirectory(prefix="rnnbench-litert-") as folder:
        tf.saved_model.save(module, folder, signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=names)
        converter.experimental_enable_resource_variables = True
        # Without it, a loop copies all of y in every pass to write one row.
        converter._experimental_enable_dynamic_update_slice = True
        try:
            model: bytes = converter.convert()
        except Exception as error:  # the converter's error has no narrower base class
            raise BuildError(f"TensorFlow's converter failed: {error}") from error
    return model


def _module(request: Request) -> Any:
    if request.strategy.time == "fused":
        from rnnbench.backends.litert import fused

        return fused.module(request)
    from rnnbench.backends.tensorflow.traced_function import add_state_functions, authored

    module = authored(request, request.strategy.copies, jit=False)
    if module.state:
        add_state_functions(module)
    return module
