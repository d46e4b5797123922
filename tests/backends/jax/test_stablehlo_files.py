"""Users' modules of StableHLO, compiled by XLA."""

from __future__ import annotations

import numpy as np
import pytest
import stablehlo_files as files

from rnnbench.backends.base import Request
from rnnbench.backends.jax import JaxBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import answered, describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference


@pytest.mark.first(1)
@pytest.mark.parametrize(("name", "state"), [("kept", "stateful"), ("carried", "stitched"), ("loop", "none")])
def test_a_stream_is_the_oracles(tmp_path, name, state):
    path = files.saved(name, tmp_path)
    found = describe(path)
    network = network_of(path, answered(section_of(found, path.name), found, files.ANSWERS[name]), found)
    chunk, batch = network.steps or 1, network.rows or 1
    request = Request("jit", network, Weights(), Strategy("given", state, chunk), batch, Precision.of("float32"))
    x, start = draw_inputs(network, chunk if state == "none" else 6, batch, 0), draw_state(network, batch, 0)
    expected = run_reference(network, Weights(), x, start)
    program = JaxBackend().build(request, tmp_path / "cache")
    session = program.open()
    if start:
        session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    for held, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[held], atol=1e-6)
    assert (program.artifact.lowered, program.artifact.origin) == ("given", "imported")
    assert JaxBackend().build(request, tmp_path / "cache").cached
