"""What holds for every family of networks: published sizes, streams, and smaller networks."""

from __future__ import annotations

import numpy as np
import pytest
from small_networks import COMPOSED, small

from rnnbench.rnn import draw_inputs, draw_state, draw_weights, run_reference

PARAMETERS = {
    "dtln-1": 362_369,
    "dtln-2": 624_384,
    "kws-crnn": 467_772,
    "kws-gru": 593_836,
    "kws-lstm": 545_912,
    "kws-svdf": 354_444,
    "rnnoise": 1_341_729,
    "silero-vad": 309_633,
}
"""As published; each family's file says where."""
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
