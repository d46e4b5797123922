"""Users' modules of StableHLO and SavedModels, compiled by IREE."""

from __future__ import annotations

import numpy as np
import pytest
import stablehlo_files as files
from quick_tests import for_proof

from rnnbench.backends.base import Request
from rnnbench.backends.iree import IreeBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import ModelFileError, answered, describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference


def requested(path, answers, route, state):
    found = describe(path)
    network = network_of(path, answered(section_of(found, path.name), found, answers), found)
    strategy = Strategy("given", state, network.steps or 1)
    return Request(route, network, Weights(), strategy, network.rows or 1, Precision.of("float32"))


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("name", "state"),
    [("kept", "stateful"), ("loop", "none"), *for_proof(("kept", "stitched"), ("carried", "stateful"))],
)
def test_a_stream_is_the_oracles(tmp_path, name, state):
    asked = requested(files.saved(name, tmp_path), files.ANSWERS[name], "stablehlo", state)
    steps = asked.strategy.chunk if state == "none" else 6
    x, start = draw_inputs(asked.model, steps, asked.batch, 0), draw_state(asked.model, asked.batch, 0)
    expected = run_reference(asked.model, Weights(), x, start)
    program = IreeBackend().build(asked, tmp_path / "cache")
    session, other = program.open(), program.open()
    if start:
        session.set_state(start)
        other.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    for held, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[held], atol=1e-6)
    bound = other.bind(
        [{"x": x[first : first + asked.strategy.chunk]} for first in range(0, steps, asked.strategy.chunk)]
    )
    for first in range(0, steps, asked.strategy.chunk):
        bound()
        np.testing.assert_allclose(bound.output()["y"], expected.y[first : first + asked.strategy.chunk], atol=1e-6)
    session.reset()
    assert not any(array.any() for array in session.get_state().values())
    assert (program.artifact.lowered, program.artifact.origin) == ("given", "imported")


def test_a_file_that_changed_since_is_told(tmp_path):
    path = files.saved("kept", tmp_path)
    asked = requested(path, files.ANSWERS["kept"], "stablehlo", "stateful")
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(ModelFileError, match="has changed since the case was read"):
        IreeBackend().build(asked, tmp_path / "cache")
