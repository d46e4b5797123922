"""The activation that many of LiteRT's operators apply to their result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.schema import require_schema

Array = np.ndarray


def activated(number: int, x: Array) -> Array:
    """`ActivationFunctionType`, which many operators apply to their result."""
    kinds = require_schema().ActivationFunctionType
    functions: dict[int, Callable[[Array], Array]] = {
        kinds.NONE: lambda x: x,
        kinds.RELU: lambda x: np.maximum(x, 0),
        kinds.RELU_N1_TO_1: lambda x: np.clip(x, -1, 1),
        kinds.RELU6: lambda x: np.clip(x, 0, 6),
        kinds.TANH: np.tanh,
    }
    if number not in functions:
        raise ModelFileError(f"the activation {number} of LiteRT is not computed here")
    return functions[number](x)
