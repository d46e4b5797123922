"""Networks whose primitives stacks of cells do not have, compiled by IREE for one row, as people run them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from quick_tests import for_proof
from small_networks import small

from rnnbench.backends.base import Request
from rnnbench.backends.iree import IreeBackend
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn import draw_inputs, draw_weights, run_reference

pytest.importorskip("iree.compiler")


@pytest.mark.proof
@pytest.mark.parametrize("name", ["dtln-2", *for_proof("kws-svdf", "silero-vad")])
def test_a_network_for_one_row_is_its_reference(tmp_path: Path, name: str) -> None:
    """A mean that is a product with a column of ones does not compile for one row (IREE 3.13)."""
    network = small(name)
    weights, x = draw_weights(network, 0), draw_inputs(network, 4, 1, 1)
    request = Request("linalg", network, weights, Strategy("looped", "stateful", 1), 1, Precision.of("float32"))
    session = IreeBackend().build(request, tmp_path).open()
    y = np.concatenate([session.step({"x": x[step : step + 1]})["y"] for step in range(4)])
    np.testing.assert_allclose(y, run_reference(network, weights, x).y, rtol=1e-4, atol=1e-5)
