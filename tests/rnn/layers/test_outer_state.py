"""Gated linear attention and Mamba-2's SSD against their closed forms in PyTorch: sums over all steps before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_layers import Drawn, drawn
from plain_primitives import Plain

from rnnbench.rnn import Arithmetic
from rnnbench.rnn.layers import GatedLinearAttention, RootMeanSquareNorm, StateSpaceDual

torch = pytest.importorskip("torch")
KINDS = (GatedLinearAttention(5, heads=2, keys=3, values=4), StateSpaceDual(heads=2, keys=3, values=4))


def tensors(layer: Drawn) -> tuple[Any, dict[str, Any], Any]:
    """x, the weights, and S [batch, heads, keys, values]."""
    kind: Any = layer.kind
    s = torch.from_numpy(layer.state["s"]).view(-1, kind.heads, kind.keys, kind.values)
    return torch.from_numpy(layer.x), {name: torch.from_numpy(array) for name, array in layer.weights.items()}, s


def summed(q: Any, k: Any, v: Any, log_gates: Any, s: Any) -> tuple[Any, Any]:
    """y[t] = q[t]·(Π g·S + Σ Π g·k[s]ᵀ·v[s]), and the last state: all [steps, batch, heads, …]."""
    total = log_gates.cumsum(0)
    states = []
    for t in range(len(q)):
        left = (total[t] - total[: t + 1]).exp()
        added = torch.einsum("sbhn,sbhp->bhnp", left * k[: t + 1], v[: t + 1])
        states.append(total[t].exp()[..., None] * s + added)
    every = torch.stack(states)
    return torch.einsum("tbhn,tbhnp->tbhp", q, every).flatten(2), every[-1].flatten(1)


def test_gated_linear_attention_is_a_sum_over_the_steps_before() -> None:
    layer = drawn(GatedLinearAttention(5, heads=2, keys=3, values=4))
    x, w, s = tensors(layer)
    q, k, v, low = torch.nn.functional.linear(x, w["weight"]).split([6, 6, 8, 16], dim=-1)
    gates = torch.nn.functional.linear(low, w["gate_weight"], w["gate_bias"])
    by_head = [value.unflatten(-1, (2, -1)) for value in (q / 3**0.5, k, v, torch.nn.functional.logsigmoid(gates) / 16)]
    y, final = summed(*by_head, s)
    np.testing.assert_allclose(layer.run(), y.numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(layer.final()["s"], final.numpy(), rtol=1e-10, atol=1e-12)


def test_the_state_space_layer_is_a_sum_over_the_steps_before() -> None:
    layer = drawn(StateSpaceDual(heads=2, keys=3, values=4))
    x, w, s = tensors(layer)
    value, b, c, dt = x.split([8, 3, 3, 2], dim=-1)
    value, dt = value.unflatten(-1, (2, -1)), torch.nn.functional.softplus(dt + w["dt_bias"])
    keys = [one[..., None, :].expand(-1, -1, 2, -1) for one in (c, b)]
    log_gates = (dt * -w["A_log"].exp())[..., None].expand(-1, -1, -1, 3)
    y, final = summed(*keys, dt[..., None] * value, log_gates, s)
    y = y + (w["D"][:, None] * value).flatten(2)
    np.testing.assert_allclose(layer.run(), y.numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(layer.final()["s"], final.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", ["scanned", "block"])
@pytest.mark.parametrize("open_gate", [(40.0,), (-40.0,), (40.0, -40.0), (40.0, 40.0, 40.0, -40.0)], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_gates_near_0_and_1_cost_no_digits_in_float32(kind: Any, open_gate: tuple[float, ...], form: str) -> None:
    layer = drawn(kind, steps=24, batch=1)
    gates, weights = np.resize(open_gate, 24)[:, None], dict(layer.weights)
    if isinstance(kind, GatedLinearAttention):
        # The first column of x is the input of every gate, and of nothing else.
        weights["gate_weight"] = np.ones_like(weights["gate_weight"])
        weights["weight"][:, 0] = 0
        weights["weight"][-16:] = [[1, 0, 0, 0, 0]] * 16
        layer.x[..., 0] = gates
    else:
        layer.x[..., -kind.heads :] = -gates[..., None]  # dt: a large step forgets.
    expected, states = kind.run(Arithmetic(), weights, layer.x, layer.state)
    body = kind.body(Plain(), {name: array.astype(np.float32) for name, array in weights.items()})
    projected = body.project(layer.x.reshape(24, -1).astype(np.float32))
    y, (last,) = getattr(body, form)(projected, (layer.state["s"].astype(np.float32),), 24, 1)
    assert y.dtype == last.dtype == np.float32
    np.testing.assert_allclose(y, expected[:, 0], rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_allclose(last, states["s"][-1], rtol=1e-5, atol=1e-5 * np.abs(states["s"]).max())


@pytest.mark.parametrize("groups", [1, 3])
def test_the_norm_is_that_of_torch_in_each_group(groups: int) -> None:
    layer = drawn(RootMeanSquareNorm(6, groups))
    x = torch.from_numpy(layer.x).unflatten(-1, (groups, -1))
    gamma = torch.from_numpy(layer.weights["gamma"])
    y = torch.nn.functional.rms_norm(x, gamma.shape, gamma, 1e-5).flatten(2)
    np.testing.assert_allclose(layer.run(), y.numpy(), rtol=1e-12)
