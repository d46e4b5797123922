"""exp, tanh and the sigmoid of float32 are TVM's polynomials, and within a few units of the last place."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")
from tvm import relax  # noqa: E402
from tvm.relax import op  # noqa: E402

from rnnbench.backends.tvm.relax_operations import operations  # noqa: E402
from rnnbench.backends.tvm.vm_program import compiled_module  # noqa: E402

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, 100.0, -100.0, 1e-30, -3e38])
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray], float, float]] = {
    "exp": (op.exp, np.exp, 2e-7, 1e-37),
    "tanh": (op.tanh, np.tanh, 4e-7, 0.0),
    "sigmoid": (op.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 3e-7, 1e-37),
}
"""By name: the operator, NumPy's in float64, and the largest relative and absolute difference from that."""


def points(dtype: str) -> np.ndarray:
    return np.concatenate([SPECIAL, np.linspace(-20, 20, 40_001), np.geomspace(1e-8, 1, 4_999)]).astype(dtype)


@cache
def found(dtype: str) -> tuple[dict[str, np.ndarray], set[str]]:
    """The values of each function at the points, and the names of all kernels."""
    x = points(dtype)[None]
    builder = relax.BlockBuilder()
    argument = relax.Var("x", relax.TensorType(x.shape, dtype))
    with builder.function("main", [argument]):
        with builder.dataflow():
            values = [builder.emit_output(function(argument)) for function, *_ in FUNCTIONS.values()]
        builder.emit_func_output(values)
    executable, final = compiled_module(builder.get(), "cpu")
    results = relax.VirtualMachine(executable.jit(), tvm.cpu())["main"](tvm.runtime.tensor(x))
    return {name: result.numpy() for name, result in zip(FUNCTIONS, results, strict=True)}, set(operations(final))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_polynomial_is_within_a_few_units_of_the_last_place(name: str) -> None:
    _, exact, relative, absolute = FUNCTIONS[name]
    x, (values, kernels) = points("float32")[None], found("float32")
    with np.errstate(over="ignore"):
        expected = exact(x.astype("float64")).astype("float32")
    np.testing.assert_allclose(values[name], expected, rtol=relative, atol=absolute)
    assert any(f"fast_{name}" in kernel for kernel in kernels)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_has_the_functions_of_the_library(name: str) -> None:
    _, exact, *_ = FUNCTIONS[name]
    x, (values, kernels) = points("float64")[None], found("float64")
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(values[name], exact(x), rtol=1e-15, atol=1e-15)
    assert not any("fast" in kernel for kernel in kernels)
