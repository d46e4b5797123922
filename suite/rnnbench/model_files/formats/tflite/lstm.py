"""LiteRT's operator UNIDIRECTIONAL_SEQUENCE_LSTM, in an arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.operators import activated
from rnnbench.rnn import Arithmetic

LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"
_X, _W, _R, _PEEPHOLES, _B, _PROJECTIONS, _NORMS = 0, 1, 5, 9, 12, 16, 20
"""Where the inputs of a kind begin: four each, of the gates i, f, c, o; three peepholes, two projections."""


def sequence_lstm(arithmetic: Arithmetic, options: Any, inputs: Sequence[Any]) -> np.ndarray:
    """y of all steps, from a state of zeros. Source: tensorflow/lite/kernels/unidirectional_sequence_lstm.cc."""
    others = (*inputs[_PEEPHOLES:_B], *inputs[_PROJECTIONS : _PROJECTIONS + 2], *inputs[_NORMS:])
    if inputs[_W] is None or any(each is not None for each in others):
        raise ModelFileError(f"{LSTM} with peepholes, projection, normalisation or a joint gate is not computed here")
    x = inputs[_X] if options.TimeMajor() else inputs[_X].swapaxes(0, 1)
    inside = [arithmetic.affine(inputs[_W + gate], inputs[_B + gate]) for gate in range(4)]
    around = [arithmetic.product(inputs[_R + gate]) for gate in range(4)]
    h = c = np.zeros((x.shape[1], inputs[_R].shape[1]), arithmetic.carrier)
    outputs = []
    for step in x:
        i, f, g, o = (arithmetic(inside[gate](step) + around[gate](h)) for gate in range(4))
        gates = [arithmetic.activated(0.5 * (np.tanh(0.5 * gate) + 1)) for gate in (i, f, o)]
        g = arithmetic.activated(activated(options.FusedActivationFunction(), g))
        c = arithmetic(arithmetic(gates[1] * c) + arithmetic(gates[0] * g))
        if options.CellClip() > 0:
            c = np.clip(c, -options.CellClip(), options.CellClip())
        h = arithmetic(gates[2] * arithmetic.activated(activated(options.FusedActivationFunction(), c.copy())))
        outputs.append(h)
    y = np.stack(outputs)
    return y if options.TimeMajor() else y.swapaxes(0, 1)
