"""A network whose layers cannot run in their order is refused with a sentence before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from rnnbench.rnn import Model, Size, draw_inputs, draw_weights, run_reference
from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import Dense, GatedLinearAttention, MinGru, Recurrent


def network_of(layers: Callable[[], Sequence[Placed]], gives: tuple[str, ...] = ("out",)) -> ComposedNetwork:
    class Some(ComposedNetwork):
        network: ClassVar[str] = "some"
        input: Size = 3

        def compose(self) -> Sequence[Placed]:
            return layers()

        def gives(self) -> tuple[str, ...]:
            return gives

    return Some()


def first(name: str = "first") -> Placed:
    return Placed(name, MinGru(3, 4))


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (lambda: [first(), Placed("out", Dense(5, 2), ("first",))], "'out' has the input 5, .* (first) has 4"),
        (lambda: [first(), Placed("out", Dense(4, 2), ("first", "x"))], "'out' has the input 4, .* (first, x) has 7"),
        (lambda: [first(), Placed("out", Dense(4, 2), ("frist",))], "'out' reads 'frist'; expected one of x, first"),
        (lambda: [first(), Placed("out", Dense(2, 2), ("out",))], "'out' reads 'out'; expected one of x, first"),
        (lambda: [first("out"), first("out")], "layer 'out': expected a name of .* nor another layer has"),
        (lambda: [first("x")], "layer 'x': expected a name"),
        (lambda: [first("<b>\x1b[1m")], "layer '<b>': expected a name of letters, digits and '_'"),
        (lambda: [first()], r"it gives ('out',); expected one or more of its layers"),
        (
            lambda: [Placed("a", GatedLinearAttention(3, 1, 2, 2)), Placed("a_gate", Dense(3, 4)), first("out")],
            "two layers have an array 'a_gate_weight'; rename one of the layers",
        ),
        (lambda: [1 // 0], "its layers cannot be made: ZeroDivisionError"),
    ],
)
def test_layers_that_cannot_run_are_told(layers: Callable[[], Sequence[Placed]], told: str) -> None:
    pattern = told.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValidationError, match=f"the network some cannot run: .*{pattern}"):
        network_of(layers)


def test_a_network_that_gives_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"it gives \(\); expected"):
        network_of(lambda: [first("out")], gives=())


def test_layers_side_by_side_fit() -> None:
    assert network_of(lambda: [first(), Placed("out", Dense(7, 2), ("first", "x"))]).width == 2


def test_the_name_of_a_layer_may_begin_as_that_of_another() -> None:
    """The arrays of `out_2` are not those of `out`."""
    lstm = Recurrent(Model(cell="lstm", input=3, hidden=3))
    network, plain = (
        network_of(lambda second=second: [Placed("out", lstm), Placed(second, lstm, ("out",))], (second,))
        for second in ("out_2", "second")
    )
    y, expected = (run_reference(n, draw_weights(n, 0), draw_inputs(n, 4, 2, 0)).y for n in (network, plain))
    np.testing.assert_array_equal(y, expected)
