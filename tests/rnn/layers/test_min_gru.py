"""minGRU, against its equations in PyTorch and against its closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_layers import drawn

from rnnbench.rnn.layers import MinGru
from rnnbench.rnn.network import x_towards


def test_its_state_is_the_linear_recurrence_of_the_paper() -> None:
    """All steps at once: h is Σ z·h̃, each kept by the products of 1 − z after it."""
    torch = pytest.importorskip("torch")
    layer = drawn(MinGru(4, 6))
    weights = {name: torch.from_numpy(array) for name, array in layer.weights.items()}
    z, candidate = torch.nn.functional.linear(torch.from_numpy(layer.x), **weights).split(6, dim=-1)
    z = z.sigmoid()
    kept = torch.cumprod(1 - z, dim=0)
    h = kept * (torch.from_numpy(layer.state["h"]) + torch.cumsum(z * candidate / kept, dim=0))
    np.testing.assert_allclose(layer.run(), h.numpy(), rtol=1e-10, atol=1e-12)


def test_a_unit_keeps_its_state_or_forgets_it_where_its_gate_is_pinned() -> None:
    layer = drawn(MinGru(4, 6), steps=3)
    units = np.arange(3)
    rows = layer.kind.pinning_rows(layer.weights, units)

    def after(preactivation: float, start: np.ndarray) -> np.ndarray:
        """Unit i of row i."""
        x = np.stack([x_towards(rows, preactivation)] * 3)
        return replace(layer, x=x, state={"h": start}).final()["h"][units, units]

    start = layer.state["h"]
    np.testing.assert_allclose(after(100.0, start), start[units, units], rtol=1e-12)
    np.testing.assert_allclose(after(-100.0, start), after(-100.0, start + 1), rtol=1e-12)
