"""The account of a call: against counts by hand, and against the cells themselves, run over primitives that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples
from random_models import models
from small_networks import COMPOSED, small

from rnnbench.rnn import Model, call_cost, contraction, draw_weights
from rnnbench.rnn.cells import cell_body

LSTM = Model(cell="lstm", input=3, hidden=4)


def test_an_lstm_step_counted_by_hand() -> None:
    cost = call_cost(LSTM, chunk=1, batch=1)
    input_weights, state_weights, bias = 16 * 3, 16 * 4, 16
    assert cost.weights == 4 * (input_weights + state_weights + bias)
    assert cost.nbytes == cost.weights + 4 * (3 + 4 + 4)  # x, h and c
    assert cost.operations == 2 * (input_weights + state_weights) + 4 * 9


def test_an_int8_weight_counts_one_byte_and_values_four() -> None:
    cost = call_cost(LSTM, chunk=1, batch=1, weight_bytes=1)
    assert cost.weights == 16 * (3 + 4 + 1)
    assert cost.nbytes == cost.weights + 4 * (3 + 4 + 4)


def test_a_hoisted_projection_reads_the_inputs_weights_once_a_call() -> None:
    each, state = 4 * 16 * (3 + 1), 4 * 16 * 4
    values = 4 * (10 * 3 + 8)
    assert call_cost(LSTM, 10, 1, hoisted=10).nbytes == each + 10 * state + values
    assert call_cost(LSTM, 10, 1, hoisted=1).nbytes == 10 * (each + state) + values
    assert call_cost(LSTM, 10, 1, hoisted=4).nbytes == 3 * each + 10 * state + values


def test_unknown_is_the_lowest_account() -> None:
    lowest = call_cost(LSTM, 10, 1).nbytes
    assert all(lowest <= call_cost(LSTM, 10, 1, hoisted=steps).nbytes for steps in (1, 3, 4, 9, 10, 11))


def test_a_second_step_finds_only_its_own_layer_before_it() -> None:
    model = Model(cell="rnn", input=3, hidden=4, layers=2, bias=False)
    whole, *again = call_cost(model, 5, 1).readings
    assert whole.working_set == 4 * (4 * 3 + 4 * 4 + 4 * 4 + 4 * 4)
    assert [(r.nbytes, r.working_set, r.times) for r in again] == [(64, 64, 4), (64, 64, 4)]


def test_a_batch_multiplies_the_work_and_not_the_weights() -> None:
    one, eight = call_cost(LSTM, 5, 1), call_cost(LSTM, 5, 8)
    assert eight.operations == 8 * one.operations
    assert eight.weights == one.weights
    assert eight.nbytes - one.nbytes == 7 * 4 * (5 * 3 + 8)


def test_narrow_weights_are_fewer_bytes() -> None:
    assert call_cost(LSTM, 5, 1, weight_bytes=1).weights * 4 == call_cost(LSTM, 5, 1).weights


def test_a_counter_reads_its_values_and_adds() -> None:
    cost = call_cost(Model(cell="counter", input=6, hidden=6), chunk=5, batch=2)
    assert (cost.weights, cost.nbytes, cost.operations) == (0, 4 * 2 * (5 * 6 + 6), 5 * 2 * 6)


@dataclass(frozen=True)
class Value:
    """A value's shape, and what makes operations on it free."""

    shape: tuple[int, ...]
    sums: bool = False
    """Whether it is a sum of products that another addend joins for nothing."""
    uniform: bool = False
    """Whether all columns are equal, so that one of them is computed."""
    negates: bool = False
    """Whether it is -1: a sign is no operation."""


class Counting:
    """The vocabulary over shapes alone. What is added to a product starts its sum, and costs no operation."""

    def __init__(self) -> None:
        self.operations = 0
        self.constants = 0

    def constant(self, array: np.ndarray) -> Value:
        self.constants += array.size
        equal = bool((array == array.flat[0]).all())
        return Value(array.shape, sums=array.ndim == 1, uniform=equal, negates=equal and array.flat[0] == -1)

    def matmul(self, x: Value, weight: Value) -> Value:
        (rows, inner), (_, columns) = x.shape, weight.shape
        self.operations += 2 * rows * inner * columns
        return Value((rows, columns), sums=True)

    def add(self, a: Value, b: Value) -> Value:
        if a.sums and b.sums:
            return a
        return self._each(a, b)

    def _each(self, a: Value, *others: Value) -> Value:
        if any(other.negates for other in others):
            return Value(a.shape)
        uniform = all(value.uniform for value in (a, *others))
        self.operations += a.shape[0] if uniform else prod(a.shape)
        return Value(a.shape, uniform=uniform)

    sub = mul = div = _each
    sigmoid = tanh = relu = sqrt = exp = log_sigmoid = _each

    def clip(self, x: Value, bound: float) -> Value:
        return self._each(x)

    def mean(self, x: Value) -> Value:
        return replace(self._each(replace(x, uniform=False)), uniform=True)

    def split(self, x: Value, parts: int) -> list[Value]:
        return [Value((x.shape[0], x.shape[1] // parts), x.sums)] * parts

    def columns(self, x: Value, start: int, stop: int) -> Value:
        return Value((x.shape[0], stop - start), x.sums)

    def concat(self, parts: Sequence[Value]) -> Value:
        width = sum(part.shape[1] for part in parts)
        return Value((parts[0].shape[0], width), all(part.sums for part in parts))

    def reshape(self, x: Value, *shape: int) -> Value:
        sizes = (prod(x.shape) // -prod(shape) if size == -1 else size for size in shape)
        return Value(tuple(sizes), x.sums)

    def einsum(self, equation: str, a: Value, b: Value) -> Value:
        parts = contraction(equation)
        sizes = dict(zip(parts.a + parts.b, a.shape + b.shape, strict=True))
        self.operations += (2 if parts.summed else 1) * prod(sizes[letter] for letter in parts.every)
        return Value(tuple(sizes[letter] for letter in parts.out))


@examples(40)
@given(model=models(), chunk=st.integers(1, 5), batch=st.integers(1, 3))
def test_agrees_with_the_cells_run_over_counting_primitives(model: Model, chunk: int, batch: int) -> None:
    counting = Counting()
    weights = draw_weights(model, 0)
    for row in range(model.layers * model.directions):
        body = cell_body(counting, model, weights.row(row))
        state = tuple(Value((batch, size)) for _, _, size in model.state_shapes(batch).values())
        for _ in range(chunk):
            projected = body.project(Value((batch, model.layer_input(row // model.directions))))
            body.advance(projected, state)
    cost = call_cost(model, chunk, batch)
    assert cost.operations == counting.operations
    assert cost.weights == 4 * (counting.constants - _folded(model))


def _folded(model: Model) -> int:
    """Biases that the cells leave apart and that could be added up beforehand: those of a GRU's first two gates."""
    apart = model.cell == "gru" and model.reset_after and model.bias
    return 2 * model.hidden * model.layers * model.directions if apart else 0


@pytest.mark.parametrize("name", COMPOSED)
def test_each_layer_of_a_network_costs_what_its_body_computes(name: str) -> None:
    """A layer that cost more would give a floor that a program can be below."""
    network = small(name)
    zeros = network.as_weights({spec.name: np.zeros(spec.shape) for spec in network.weight_specs()})
    for index, placed in enumerate(network.compose()):
        counting, kind = Counting(), placed.kind
        body = network.body(counting, zeros, index)
        projected = body.project(Value((1, kind.input)))
        if kind.states:
            body.advance(projected, tuple(Value((1, size)) for size in kind.states.values()))
        assert kind.cost.operations == counting.operations, placed


@pytest.mark.parametrize("hoisted", [None, 1, 2, 7])
def test_every_step_reads_the_states_weights(hoisted: int | None) -> None:
    model = Model(cell="gru", input=5, hidden=6, layers=2, direction="bidirectional")
    for chunk in (1, 2, 7):
        cost = call_cost(model, chunk, 1, hoisted=hoisted)
        assert sum(reading.times for reading in cost.readings) == 1 + 4 * (chunk - 1)
