"""Products of odd widths are computed in whole tiles, and give what they gave."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

tvm = pytest.importorskip("tvm")
from tvm import relax  # noqa: E402

from rnnbench.backends.tvm.framework import lanes  # noqa: E402
from rnnbench.backends.tvm.tiles import FEW, OUTPUTS, padded  # noqa: E402
from rnnbench.backends.tvm.vm_program import compiled_module  # noqa: E402

ROWS, TERMS = 3, 24


@given(st.integers(1, 5000), st.sampled_from([4, 8, 16]))
def test_columns_become_whole_vectors_and_many_become_whole_tiles(columns: int, lanes: int) -> None:
    wide = padded(columns, lanes)
    assert columns <= wide < columns + OUTPUTS
    if columns > 1:
        assert wide % (lanes if columns <= FEW else OUTPUTS) == 0
    assert padded(wide, lanes) == wide


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2, 12, 33, 129, 258, 320])
def test_a_product_with_a_constant_is_as_numpy_computes_it(columns: int, dtype: str) -> None:
    weights = np.random.default_rng(0).standard_normal((TERMS, columns)).astype(dtype)
    x = np.random.default_rng(1).standard_normal((ROWS, TERMS)).astype(dtype)
    executable, final = compiled_module(product_and_tanh(columns, weights), "cpu")
    y = relax.VirtualMachine(executable.jit(), tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    assert y.dtype == dtype
    np.testing.assert_allclose(y, np.tanh(x @ weights), atol=1e-5 if dtype == "float32" else 1e-13)
    assert columns_of_products(final) == {padded(columns, lanes())}


def test_a_product_of_two_arguments_stays_as_it_is() -> None:
    _, final = compiled_module(product_and_tanh(129, None), "cpu")
    assert columns_of_products(final) == {129}


def product_and_tanh(columns: int, weights: np.ndarray | None) -> Any:
    """tanh(x @ weights), the weights a constant or a second argument."""
    builder, dtype = relax.BlockBuilder(), "float32" if weights is None else str(weights.dtype)
    x = relax.Var("x", relax.TensorType((ROWS, TERMS), dtype))
    given = relax.Var("weights", relax.TensorType((TERMS, columns), dtype))
    with builder.function("main", [x] if weights is not None else [x, given]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, given if weights is None else relax.const(weights, dtype)))
            result = builder.emit_output(builder.emit(relax.op.tanh(product)))
        builder.emit_func_output(result)
    return builder.get()


def columns_of_products(module: Any) -> set[int]:
    """The last sizes of the weights that the functions take, by their text."""
    return {int(columns) for columns in re.findall(rf"\(T\.int64\({TERMS}\), T\.int64\((\d+)\)\)", module.script())}
