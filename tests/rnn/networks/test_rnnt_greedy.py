"""RNN-T's greedy search against MLPerf's loop over PyTorch's modules, in float64 and with the same weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from torch_lstm import lstm

from rnnbench.rnn import (
    Network,
    Weights,
    call_cost,
    draw_inputs,
    draw_state,
    draw_weights,
    families,
    joined,
    run_reference,
)
from rnnbench.rnn.networks.rnnt import SYMBOLS
from rnnbench.rnn.networks.rnnt_greedy import NO_SYMBOL, Rnnt

SMALL = Rnnt(input=16, hidden=12, prediction=12, max_symbols=4, blank_bias=6)
STEPS = 24


def of_part(weights: Weights, part: str) -> Weights:
    prefix = f"{part}_"
    return Weights(
        arrays={name.removeprefix(prefix): a for name, a in weights.arrays.items() if name.startswith(prefix)}
    )


def mlperf(network: Rnnt, weights: Weights, x: np.ndarray) -> tuple[list[list[int]], np.ndarray]:
    """The symbols of each step, and the last logits of each, of x [frames, features]: one utterance."""
    torch: Any = pytest.importorskip("torch")
    parts = {name: of_part(weights, name) for name in ("encoder1", "encoder2", "decoder")}
    first = lstm(parts["encoder1"], x.shape[1], network.hidden, 2)
    second = lstm(parts["encoder2"], 2 * network.hidden, network.hidden, 3)
    said = lstm(parts["decoder"], network.prediction, network.prediction, 2)
    arrays = {name: torch.tensor(array) for name, array in parts["decoder"].arrays.items()}
    symbols, logits = [], []
    with torch.no_grad():
        low, _ = first(torch.tensor(x)[:, None])
        high, _ = second(torch.cat([low[0::2], low[1::2]], dim=2))
        state, last = None, None
        for heard in high[:, 0]:
            of_step: list[int] = []
            while len(of_step) < network.max_symbols:
                embedded = arrays["embedding_weight"].T[last] if last is not None else torch.zeros(network.prediction)
                g, after = said(embedded.double()[None, None], state)
                joint = arrays["joint_weight"] @ torch.cat([heard, g[0, 0]]) + arrays["joint_bias"]
                scores = arrays["logits_weight"] @ joint.relu() + arrays["logits_bias"]
                biased = scores.clone()
                biased[SYMBOLS] += network.blank_bias
                best = int(biased.argmax())
                if best == SYMBOLS:
                    break
                of_step.append(best)
                state, last = after, best
            symbols.append(of_step)
            logits.append(scores.numpy())
    return symbols, np.stack(logits)


def said_by(network: Rnnt, y: np.ndarray) -> list[list[int]]:
    """The symbols of each step, of y [steps, width]."""
    return [[int(symbol) for symbol in of_step if symbol != NO_SYMBOL] for of_step in y[:, : network.max_symbols]]


@pytest.fixture(scope="module")
def weights() -> Weights:
    return draw_weights(SMALL, 0, "float64")


def test_it_says_what_mlperfs_loop_says(weights: Weights) -> None:
    x = draw_inputs(SMALL, STEPS, 2, 0, "float64")
    y = run_reference(SMALL, weights, x).y
    for row in range(2):
        symbols, logits = mlperf(SMALL, weights, x[:, row].reshape(2 * STEPS, -1))
        assert said_by(SMALL, y[:, row]) == symbols
        np.testing.assert_allclose(y[:, row, SMALL.max_symbols :], logits, rtol=1e-10, atol=1e-12)


def test_blanks_and_symbols_both_occur(weights: Weights) -> None:
    numbers = [len(of_step) for of_step in said_by(SMALL, run_reference(SMALL, weights, long_x()).y[:, 0])]
    assert 0 in numbers
    assert any(0 < number < SMALL.max_symbols for number in numbers)
    assert SMALL.max_symbols in numbers


def long_x() -> np.ndarray:
    return draw_inputs(SMALL, 3 * STEPS, 1, 0, "float64")


class PartStream:
    """A session of a part, by its own reference."""

    def __init__(self, network: Network, weights: Weights, batch: int) -> None:
        self.network, self.weights = network, weights
        self.state = {name: np.zeros(shape) for name, shape in network.state_shapes(batch).items()}
        self.calls = 0

    def step(self, x: np.ndarray) -> np.ndarray:
        self.calls += 1
        run = run_reference(self.network, self.weights, x, self.state)
        self.state = run.final
        return run.y

    def get_state(self) -> dict[str, np.ndarray]:
        return dict(self.state)

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        self.state = dict(state)


def test_the_loop_in_the_host_gives_what_the_reference_gives(weights: Weights) -> None:
    """It ends a step as soon as all rows have their blank, and not before."""
    x = draw_inputs(SMALL, STEPS, 2, 0, "float64")
    streams = {part.name: PartStream(part.network, SMALL.weights_of(part, weights), 2) for part in SMALL.parts}
    carried = {name: np.zeros((1, 2, size)) for name, size in SMALL.carried.items()}
    y, carried = SMALL.advance(streams, x, carried)
    expected = run_reference(SMALL, weights, x)
    np.testing.assert_allclose(y, expected.y, rtol=1e-10, atol=1e-12)
    for name, array in joined([(part, streams[part.name].state) for part in SMALL.parts]).items():
        np.testing.assert_allclose(array, expected.final[name], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(carried["symbol"], expected.final["symbol"])
    longest = [max(len(said_by(SMALL, y[[step], row])[0]) for row in range(2)) for step in range(STEPS)]
    assert streams["decoder"].calls == sum(min(symbols + 1, SMALL.max_symbols) for symbols in longest)


def test_a_stream_in_two_parts_is_the_whole_stream(weights: Weights) -> None:
    x, start = draw_inputs(SMALL, 9, 2, 1, "float64"), draw_state(SMALL, 2, 2, "float64")
    whole = run_reference(SMALL, weights, x, start)
    first = run_reference(SMALL, weights, x[:4], start)
    second = run_reference(SMALL, weights, x[4:], first.final)
    np.testing.assert_allclose(np.concatenate([first.y, second.y]), whole.y, rtol=1e-12, atol=1e-12)


def test_the_margin_is_that_of_the_closest_decision_of_a_step(weights: Weights) -> None:
    x = draw_inputs(SMALL, STEPS, 1, 0, "float64")
    run = run_reference(SMALL, weights, x)
    assert run.margin is not None
    without_symbols = np.flatnonzero([not symbols for symbols in said_by(SMALL, run.y[:, 0])])
    scores = run.y[without_symbols, 0, SMALL.max_symbols :].copy()
    scores[:, SYMBOLS] += SMALL.blank_bias
    second, first = np.sort(scores, axis=1)[:, -2:].T
    np.testing.assert_allclose(run.margin[without_symbols, 0], first - second)


def test_the_published_sizes_have_the_published_parameters() -> None:
    assert families()["rnnt"]().weight_count == 45_323_037


def test_a_step_reads_the_weights_of_the_decoder_once_at_least() -> None:
    network = Rnnt()
    cost = call_cost(network, chunk=2, batch=1)
    first, second, decoder = (call_cost(part.network, 1, 1).weights for part in network.parts)
    assert cost.weights == first + second + decoder
    assert cost.nbytes > cost.weights + decoder
    assert cost.operations == 2 * call_cost(network, chunk=1, batch=1).operations


def test_smaller_ones_can_be_run() -> None:
    smaller = list(SMALL.smaller())
    assert {frozenset(network.model_dump().items()) for network in smaller}
    for network in smaller:
        run_reference(network, draw_weights(network, 0), draw_inputs(network, 2, 1, 0))
