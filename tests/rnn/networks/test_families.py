"""What holds for every family of networks: published sizes, streams, and smaller networks."""

from __future__ import annotations

import numpy as np
import pytest
from small_networks import COMPOSED, small

from rnnbench.rnn import draw_inputs, draw_state, draw_weights, run_reference
from rnnbench.rnn.networks.mamba2 import Mamba2Block

PARAMETERS = {
    "dtln-1": 362_369,
    "dtln-2": 624_384,
    "gla": 4 * 1024**2 + 1024 * 16 + 16 * 512 + 512 + 256,
    "kws-crnn": 467_772,
    "kws-gru": 593_836,
    "kws-lstm": 545_912,
    "kws-svdf": 354_444,
    "mamba2": 768 * (2 * 1536 + 2 * 128 + 24) + (1536 + 2 * 128) * 5 + 3 * 24 + 1536 + 1536 * 768,
    "rnnoise": 1_341_729,
    "silero-vad": 309_633,
}
"""As published; each family's file says where. Of `gla` and `mamba2` the source has the shapes, and these are they."""
RNNT = ("rnnt-encoder-1", "rnnt-encoder-2", "rnnt-decoder")


@pytest.mark.parametrize("name", PARAMETERS)
def test_it_has_as_many_parameters_as_the_published_network(name: str) -> None:
    assert COMPOSED[name]().weight_count == PARAMETERS[name]


def test_the_three_programs_of_rnnt_have_as_many_parameters_as_the_published_network() -> None:
    assert sum(COMPOSED[name]().weight_count for name in RNNT) == 45_323_037


@pytest.mark.parametrize("name", COMPOSED)
def test_a_stream_in_two_parts_is_the_whole_stream(name: str) -> None:
    network = small(name)
    weights = draw_weights(network, 0, "float64")
    x, start = draw_inputs(network, 9, 2, 1, "float64"), draw_state(network, 2, 2, "float64")
    whole = run_reference(network, weights, x, start)
    first = run_reference(network, weights, x[:4], start)
    second = run_reference(network, weights, x[4:], first.final)
    np.testing.assert_allclose(np.concatenate([first.y, second.y]), whole.y, rtol=1e-12, atol=1e-14)
    for key, array in whole.final.items():
        np.testing.assert_allclose(second.final[key], array, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", COMPOSED)
def test_its_y_depends_on_every_array_of_its_weights_and_of_its_state(name: str) -> None:
    network = small(name)
    arrays = dict(draw_weights(network, 0, "float64").arrays)
    x, start = draw_inputs(network, 12, 2, 1, "float64"), draw_state(network, 2, 2, "float64")

    def y(weights: dict[str, np.ndarray], state: dict[str, np.ndarray]) -> np.ndarray:
        return run_reference(network, network.as_weights(weights), x, state).y

    expected = y(arrays, start)
    for key, array in arrays.items():
        assert np.abs(y({**arrays, key: array * 1.5}, start) - expected).max() > 1e-12, key
    for key, array in start.items():
        assert np.abs(y(arrays, {**start, key: array * 1.5}) - expected).max() > 1e-12, key


@pytest.mark.parametrize("name", COMPOSED)
def test_a_failure_can_be_shown_on_a_network_of_few_units(name: str) -> None:
    assert small(name).weight_count < COMPOSED[name]().weight_count / 10


def test_a_head_of_mamba2_keeps_its_state_or_forgets_it_where_its_gate_is_pinned() -> None:
    network, batch = Mamba2Block(input=6, hidden=8, heads=2, keys=4), 2
    weights = draw_weights(network, 0, "float64")
    start, other = (draw_state(network, batch, seed, "float64") for seed in (2, 3))

    def pinned_heads(state: dict[str, np.ndarray]) -> np.ndarray:
        """Head i of row i."""
        heads = state["ssd_s"].reshape(batch, network.heads, -1)
        return np.stack([heads[row, row] for row in range(batch)])

    def after(toward: float, s: np.ndarray) -> np.ndarray:
        x = np.stack([network.pinning_x(weights, batch, toward)] * 3)
        return pinned_heads(run_reference(network, weights, x, {**start, "ssd_s": s}).final)

    np.testing.assert_allclose(after(100.0, start["ssd_s"]), pinned_heads(start), rtol=1e-12)
    forgotten = after(-100.0, start["ssd_s"])
    np.testing.assert_allclose(forgotten, after(-100.0, other["ssd_s"]), rtol=1e-12)
    assert np.abs(forgotten).min() > 0
