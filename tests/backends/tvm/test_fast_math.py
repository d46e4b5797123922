"""exp, tanh and the sigmoid of float32 are TVM's polynomials, and within a few units of the last place."""

from __future__ import annotations

from collections.abc import Callable
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


def compiled(function: Callable[[Any], Any], count: int, dtype: str) -> tuple[Any, Any]:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, count), dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(function(x))
        builder.emit_func_output(y)
    return compiled_module(builder.get(), "cpu")


def values(executable: Any, x: np.ndarray) -> np.ndarray:
    result: np.ndarray = relax.VirtualMachine(executable.jit(), tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    return result


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_polynomial_is_within_a_few_units_of_the_last_place(name: str) -> None:
    function, exact, relative, absolute = FUNCTIONS[name]
    x = points("float32")[None]
    executable, final = compiled(function, x.size, "float32")
    with np.errstate(over="ignore"):
        expected = exact(x.astype("float64")).astype("float32")
    np.testing.assert_allclose(values(executable, x), expected, rtol=relative, atol=absolute)
    assert any(f"fast_{name}" in kernel for kernel in operations(final))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_has_the_functions_of_the_library(name: str) -> None:
    function, exact, *_ = FUNCTIONS[name]
    x = points("float64")[None]
    executable, final = compiled(function, x.size, "float64")
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(values(executable, x), exact(x), rtol=1e-15, atol=1e-15)
    assert not any("fast" in kernel for kernel in operations(final))
