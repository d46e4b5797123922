"""The rational tanh and sigmoid, compiled, over all of float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.tvm.buffers import Buffer
from rnnbench.backends.tvm.framework import target

tvm = pytest.importorskip("tvm")
T = pytest.importorskip("tvm.tirx.script.builder")
IRBuilder = pytest.importorskip("tvm.script.ir_builder").IRBuilder
activations = pytest.importorskip("rnnbench.backends.tvm.activations")
MAX_ERROR = activations.MAX_ERROR
Emit = Callable[[Any, Any], Any]
"""A function of a VectorMath and an expression, giving one."""
LANES = 16
SIZE = 1 << 16
Function = Callable[[np.ndarray], np.ndarray]


EMITTED: dict[str, Emit] = {
    "tanh": lambda math, x: math.tanh(x).value(),
    "sigmoid": lambda math, x: math.sigmoid(x).value(),
    "relu": lambda math, x: math.relu(x).value(),
    "hard sigmoid": lambda math, x: math.hard_sigmoid(x).value(),
    "clamp": lambda math, x: math.clamp(x, 0.5),
}


@cache
def compiled(name: str) -> Function:
    """What a name stands for, as a function of float32 arrays of any size up to SIZE."""
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        x, y = T.arg("x", T.buffer((SIZE,), "float32")), T.arg("y", T.buffer((SIZE,), "float32"))
        with T.serial(SIZE // LANES) as i:
            where = tvm.tirx.Ramp(i * LANES, 1, LANES)
            T.buffer_store(y, EMITTED[name](activations.VectorMath(LANES), x[where]), [where])
    module = tvm.IRModule({"main": builder.get().with_attr("global_symbol", "main")})
    function = tvm.compile(module, target=target())["main"]

    def call(values: np.ndarray) -> np.ndarray:
        given, found = Buffer(SIZE), Buffer(SIZE)
        given.array[: values.size] = values
        function(given.tensor, found.tensor)
        return found.array[: values.size]

    return call


@pytest.fixture(scope="module")
def tanh() -> Function:
    return compiled("tanh")


@pytest.fixture(scope="module")
def sigmoid() -> Function:
    return compiled("sigmoid")


def every_range() -> np.ndarray:
    """Dense where the functions bend, every exponent there is, and where a scan of all of float32 found the worst."""
    dense = np.linspace(-20, 20, 40_000, dtype=np.float32)
    bits = np.arange(0, 0x7F800000, 0x7F800000 // 12_000, dtype=np.uint32)
    exponents = bits.view(np.float32)
    worst = np.array([8.47554, 8.500285, 5.126039, 5.9079027], np.float32)
    return np.concatenate([dense, exponents, -exponents, worst, -worst])


def test_tanh_is_within_its_error_everywhere(tanh: Function) -> None:
    x = every_range()
    assert np.abs(tanh(x) - np.tanh(x.astype(np.float64))).max() <= MAX_ERROR


def test_sigmoid_is_within_its_error_everywhere(sigmoid: Function) -> None:
    x = every_range()
    exact = np.exp(-np.logaddexp(0.0, -x.astype(np.float64)))
    assert np.abs(sigmoid(x) - exact).max() <= MAX_ERROR


def test_small_arguments_keep_their_relative_precision(tanh: Function) -> None:
    x = np.geomspace(1e-30, 1e-2, 10_000, dtype=np.float32)
    np.testing.assert_allclose(tanh(x), np.tanh(x.astype(np.float64)), rtol=4e-7)


def test_tanh_is_odd(tanh: Function) -> None:
    x = every_range()
    np.testing.assert_array_equal(tanh(-x), -tanh(x))


def test_denormals_zeros_and_infinities(tanh: Function, sigmoid: Function) -> None:
    tiny = np.float32(1e-42)
    x = np.array([0, -0.0, tiny, -tiny, np.inf, -np.inf], np.float32)
    np.testing.assert_allclose(tanh(x), [0, 0, 0, 0, 1, -1], atol=MAX_ERROR)
    np.testing.assert_allclose(sigmoid(x), [0.5, 0.5, 0.5, 0.5, 1, 0], atol=MAX_ERROR)


@pytest.mark.parametrize("name", EMITTED)
def test_a_nan_passes(name: str) -> None:
    found = compiled(name)(np.array([np.nan, 1.0], np.float32))
    assert np.isnan(found[0])
    assert not np.isnan(found[1])
