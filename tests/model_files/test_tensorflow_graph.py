"""How many terms an operation of TensorFlow adds up for each element, which its rounding depends on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rnnbench.model_files.tensorflow_graph import _terms


@pytest.mark.parametrize(
    ("kind", "attributes", "given", "made", "terms"),
    [
        ("Sum", {}, [(4, 6), (1,)], (4,), 6),
        ("MatMul", {"transpose_b": False}, [(2, 3), (3, 5)], (2, 5), 3),
        ("MatMul", {"transpose_b": True}, [(2, 3), (5, 3)], (2, 5), 3),
        ("BatchMatMulV2", {"adj_y": True}, [(7, 2, 3), (7, 5, 3)], (7, 2, 5), 3),
        ("Einsum", {"equation": b"abc,cd->abd"}, [(2, 3, 4), (4, 5)], (2, 3, 5), 4),
        ("Einsum", {"equation": b"...ab,bc->...ac"}, [(7, 2, 3), (3, 5)], (7, 2, 5), 3),
        ("Conv2D", {}, [(1, 8, 8, 4), (3, 2, 4, 16)], (1, 6, 7, 16), 3 * 2 * 4),
        ("Conv2DBackpropInput", {}, [(4,), (3, 2, 8, 5), (1, 6, 7, 5)], (1, 8, 8, 8), 3 * 2 * 5),
        ("DepthwiseConv2dNative", {}, [(1, 8, 8, 4), (3, 2, 4, 2)], (1, 6, 7, 8), 3 * 2),
    ],
)
def test_the_terms_of_a_sum_are_those_of_one_element(
    kind: str, attributes: dict[str, Any], given: list[tuple[int, ...]], made: tuple[int, ...], terms: int
) -> None:
    operation: Any = SimpleNamespace(kind=kind, attributes=attributes)
    assert _terms(operation, [np.zeros(shape) for shape in given], np.zeros(made)) == terms
