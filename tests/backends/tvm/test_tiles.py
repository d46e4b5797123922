"""Products with constant weights are computed in whole tiles, and give what they gave."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

tvm = pytest.importorskip("tvm")
from tvm import relax  # noqa: E402
from tvm.ir.expr import GenericConst  # noqa: E402

from rnnbench.backends.tvm.framework import lanes  # noqa: E402
from rnnbench.backends.tvm.tiles import FEW, OUTPUTS, padded, whole_tiles  # noqa: E402
from rnnbench.backends.tvm.vm_program import compiled_module  # noqa: E402

TERMS = 40


@given(st.integers(1, 5000), st.sampled_from([4, 8, 16]))
def test_columns_become_whole_vectors_and_many_become_whole_tiles(columns: int, lanes: int) -> None:
    wide = padded(columns, lanes)
    assert columns <= wide < columns + OUTPUTS
    if columns > 1:
        assert wide % (lanes if columns <= FEW else OUTPUTS) == 0
    assert padded(wide, lanes) == wide


DTYPES, SHAPES = ("float32", "float64"), ((3,), (8,), (2, 4))


@pytest.mark.first(6)
@pytest.mark.parametrize(
    ("of_x", "columns", "dtype"),
    [
        (SHAPES[(turn + place) % len(SHAPES)], columns, DTYPES[(place + turn) % 2])
        for turn, columns in enumerate([1, 2, 12, 33, 129, 258, 320])
        for place in range(2)
    ],
)
def test_a_product_with_a_constant_is_as_numpy_computes_it(of_x: tuple[int, ...], columns: int, dtype: str) -> None:
    weights = np.random.default_rng(0).standard_normal((TERMS, columns)).astype(dtype)
    x = np.random.default_rng(1).standard_normal((*of_x, TERMS)).astype(dtype)
    executable, final = compiled_module(product_and_tanh(columns, weights, of_x), "cpu")
    y = relax.VirtualMachine(executable.jit(), tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    assert y.dtype == dtype
    np.testing.assert_allclose(y, np.tanh(x @ weights), atol=1e-5 if dtype == "float32" else 1e-13)
    assert columns_of_products(final) == {padded(columns, lanes())}


def test_a_product_of_two_arguments_stays_as_it_is() -> None:
    _, final = compiled_module(product_and_tanh(129, None), "cpu")
    assert columns_of_products(final) == {129}


def test_copies_of_a_layer_share_their_packed_weights() -> None:
    weights = relax.const(np.ones((TERMS, TERMS), np.float32))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, TERMS), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            once = builder.emit(relax.op.tanh(builder.emit(relax.op.matmul(x, weights))))
            result = builder.emit_output(relax.op.tanh(builder.emit(relax.op.matmul(once, weights))))
        builder.emit_func_output(result)
    packed = constants_of(whole_tiles(lanes())(builder.get()))
    assert [constant.value.shape for constant in packed] == [(1, TERMS, OUTPUTS)] * 2
    assert packed[0].same_as(packed[1])


def product_and_tanh(columns: int, weights: np.ndarray | None, of_x: tuple[int, ...] = (3,)) -> Any:
    """tanh(x @ weights), the weights a constant or a second argument."""
    builder, dtype = relax.BlockBuilder(), "float32" if weights is None else str(weights.dtype)
    x = relax.Var("x", relax.TensorType((*of_x, TERMS), dtype))
    given = relax.Var("weights", relax.TensorType((TERMS, columns), dtype))
    with builder.function("main", [x] if weights is not None else [x, given]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, given if weights is None else relax.const(weights, dtype)))
            result = builder.emit_output(builder.emit(relax.op.tanh(product)))
        builder.emit_func_output(result)
    return builder.get()


def constants_of(module: Any) -> list[Any]:
    """The constants that calls have as arguments."""
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and len(node.args) > 1:
            found.extend(argument for argument in node.args[1] if isinstance(argument, GenericConst))

    relax.analysis.post_order_visit(module["main"], visit)
    return found


def columns_of_products(module: Any) -> set[int]:
    """The last sizes of the weights that the functions take, or the columns of all of their tiles, by their text."""
    text = module.script()
    rows = re.findall(rf"\(T\.int64\({TERMS}\), T\.int64\((\d+)\)\)", text)
    tiles = re.findall(rf"\(T\.int64\((\d+)\), T\.int64\({TERMS}\), T\.int64\({OUTPUTS}\)\)", text)
    return {*map(int, rows), *(int(count) * OUTPUTS for count in tiles)}
