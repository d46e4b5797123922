"""Users' `.pt2` files on the routes that trace a module, and through the torch importers of IREE and TVM."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pt2_modules import Streaming
from quick_tests import for_proof

from rnnbench.backends import find
from rnnbench.backends.base import Request
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference


@pytest.mark.parametrize(("backend", "route"), [("iree", "torch"), *for_proof(("tvm", "torch"))])
def test_a_buffer_keeps_its_state(tmp_path, cache_for, backend, route):
    """test_pt2_types.py has files on the routes of torch."""
    adapter = find(backend)
    if lack := adapter.probe().lack(route):
        pytest.skip(f"{backend}:{route} {lack.reason}; {lack.install}")
    torch.manual_seed(0)
    path = tmp_path / "buffer.pt2"
    torch.export.save(torch.export.export(Streaming().eval(), (torch.zeros(1, 3),)), path)
    found = describe(path)
    network = network_of(path, section_of(found, path.name), found)
    x, start = draw_inputs(network, 5, 1, 0), draw_state(network, 1, 0)
    expected = run_reference(network, Weights(), x, start)
    request = Request(route, network, Weights(), Strategy("given", "stateful", 1), 1, Precision.of("float32"))
    program = adapter.build(request, cache_for(f"{backend}:{route}"))
    session, other = program.open(), program.open()
    for each in (session, other):
        each.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=1e-6)
    bound = other.bind([{"x": x[:1]}, {"x": x[1:2]}])
    for step in range(2):
        bound()
        np.testing.assert_allclose(bound.output()["y"], expected.y[step : step + 1], atol=1e-6)
    assert (program.artifact.lowered, program.artifact.origin) == ("given", "imported")
