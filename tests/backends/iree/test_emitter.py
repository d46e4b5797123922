"""The text that the emitter writes is MLIR that IREE's own parser takes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.iree.compile import operations
from rnnbench.backends.iree.primitives import Primitives
from rnnbench.backends.iree.program import module
from rnnbench.backends.iree.values import Resources, Value, without_unread_constants

ir = pytest.importorskip("iree.compiler.ir")


def parsed(text: str) -> Any:
    with ir.Context():
        result = ir.Module.parse(text)
        assert result.operation.verify()
        return result


def walked(text: str) -> dict[str, int]:
    """Operations that are written; what a named operation of linalg means, the parser adds by itself."""
    names: Counter[str] = Counter()

    def visit(operation: Any) -> Any:
        names[operation.name] += 1
        return ir.WalkResult.SKIP if operation.name in {"linalg.matmul", "linalg.fill"} else ir.WalkResult.ADVANCE

    with ir.Context():
        ir.Module.parse(text).operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return dict(names)


def within_a_function(emitter: Primitives, resources: Resources) -> str:
    body = "\n".join(without_unread_constants(emitter.lines))
    x = "%x: tensor<2x6xf32>, %row: tensor<1x8xf32>"
    return f"module {{\n  func.func @f({x}) {{\n{body}\n    return\n  }}\n}}\n{resources.text(body)}"


@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
@pytest.mark.parametrize("time", ["looped", "unrolled", "unrolled:2"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn", "counter"])
def test_every_cell_and_strategy_parses(request_of: Any, cell: str, time: str, state: str) -> None:
    sizes = {"input": 5, "hidden": 5} if cell == "counter" else {"layers": 2}
    parsed(module(request_of(cell=cell, time=time, state=state, batch=3, **sizes)))


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_backward_directions_parse(request_of: Any, direction: str) -> None:
    parsed(module(request_of(direction=direction, layers=2, state="none")))


def test_operations_are_counted_as_the_parser_counts_them(request_of: Any) -> None:
    text = module(request_of(state="stateful", layers=2, projection=9, clip=0.4, cell_clip=0.3))
    assert operations(text) == walked(text)


def test_elementwise_operations_become_one_when_a_value_is_needed() -> None:
    resources = Resources()
    e = Primitives(resources)
    x = Value((2, 6), "%x")
    shared = e.sigmoid(x)
    values = (e.mul(shared, x), e.relu(e.sub(shared, e.constant(np.ones(6, np.float32)))))
    e.compute(*values)
    counts = walked(within_a_function(e, resources))
    assert counts["linalg.generic"] == 1
    assert counts["math.exp"] == 1


def test_parts_that_are_put_side_by_side_are_not_computed_in_one_operation() -> None:
    resources = Resources()
    e = Primitives(resources)
    x = Value((2, 6), "%x")
    e.concat([e.relu(x), e.tanh(x)])
    counts = walked(within_a_function(e, resources))
    assert (counts["linalg.generic"], counts["tensor.concat"]) == (2, 1)


def test_an_expression_is_split_before_it_is_computed() -> None:
    resources = Resources()
    e = Primitives(resources)
    bias = e.constant(np.arange(6, dtype=np.float32))
    parts = e.split(e.clip(e.add(Value((2, 6), "%x"), bias), 1e-3), 3)
    e.compute(*parts)
    counts = walked(within_a_function(e, resources))
    assert counts["tensor.extract_slice"] == 6
    assert [part.shape for part in parts] == [(2, 2)] * 3


def test_equal_weights_are_stored_once() -> None:
    resources = Resources()
    e = Primitives(resources)
    for _ in range(2):
        e.compute(e.relu(e.constant(np.full((3, 2), 0.5, np.float32))))
    assert within_a_function(e, resources).count('"0x') == 1


@pytest.mark.parametrize(("steps", "barriers"), [(128, 0), (256, 1)])
def test_a_product_reads_a_large_slice_behind_a_barrier(steps: int, barriers: int) -> None:
    resources = Resources()
    e = Primitives(resources)
    wide, weight = e.constant(np.ones((steps, 64), np.float32)), e.constant(np.ones((16, 32), np.float32))
    e.matmul(e.columns(wide, 48, 64), weight)
    counts = walked(within_a_function(e, resources))
    assert counts.get("util.optimization_barrier", 0) == barriers


@pytest.mark.parametrize(
    ("lanes", "shape", "is_packed"),
    [(8, (8, 16), True), (4, (8, 12), True), (0, (8, 16), False), (8, (6, 16), False), (8, (8, 12), False)],
)
def test_a_row_times_a_weight_is_four_sums_where_vectors_and_columns_divide_it(
    lanes: int, shape: tuple[int, int], is_packed: bool
) -> None:
    resources = Resources()
    e = Primitives(resources, lanes)
    row = Value((1, shape[0]), "%row")
    if shape[0] != 8:
        row = e.constant(np.ones((1, shape[0]), np.float32))
    product = e.matmul(row, e.constant(np.ones(shape, np.float32)))
    e.compute(product)
    text = within_a_function(e, resources)
    counts = walked(text)
    assert product.shape == (1, shape[1])
    assert counts.get("linalg.matmul", 0) == (not is_packed)
    assert (f": tensor<{shape[1] // (lanes or 1)}x4x{shape[0] // 4}x{lanes}xf32>" in text) == is_packed
    assert (f"tensor<{shape[0]}x{shape[1]}xf32>" in text) != is_packed, "the weight is stored in one form"


def test_several_rows_times_a_weight_stay_a_product() -> None:
    resources = Resources()
    e = Primitives(resources, lanes=8)
    e.matmul(e.constant(np.ones((2, 8), np.float32)), e.constant(np.ones((8, 16), np.float32)))
    assert walked(within_a_function(e, resources))["linalg.matmul"] == 1
