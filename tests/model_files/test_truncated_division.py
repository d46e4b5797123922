"""Division of whole numbers in the operators of each format."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rnnbench.model_files.formats.stablehlo import operations as stablehlo
from rnnbench.model_files.formats.tflite import operators as tflite

QUOTIENTS = [
    *((7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (6, -2, -3), (2**62 + 1, 1, 2**62 + 1)),
    *((5, 0, 5), (-5, 0, -5)),
]


def of_stablehlo(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return stablehlo.COMPUTED["stablehlo.divide"](SimpleNamespace(), [a, b])


def of_tflite(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    pytest.importorskip("ai_edge_litert")
    return tflite.OPERATIONS["DIV"](SimpleNamespace(FusedActivationFunction=lambda: 0), [a, b])[0]


@pytest.mark.parametrize("divided", [of_stablehlo, of_tflite])
def test_whole_numbers_are_divided_towards_zero_in_all_of_their_bits(divided):
    a, b, quotients = (np.array(column, np.int64) for column in zip(*QUOTIENTS, strict=True))
    made = divided(a, b)
    assert made.dtype == np.int64
    assert made.tolist() == quotients.tolist()
