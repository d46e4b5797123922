"""nn.LSTM, nn.GRU and nn.RNN: which of them a model is, and as a module that torch's compilers and exporters record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rnnbench.backends.base import Request
from rnnbench.rnn.spec import Model

ONEDNN_FROM = 8
"""Steps of a call from which oneDNN's LSTM is the faster one: it packs its weights anew in every call. With 128 and
with 512 hidden units both break even at 8; the figures are in `docs/backends/torch.md`."""
ONEDNN_KERNEL = "mkldnn_rnn_layer"


def library_module(model: Model, dtype: torch.dtype, weights: Mapping[str, Tensor]) -> nn.RNNBase:
    """The module that nn has for a model. There is none that only runs backwards: that is this one, x and y flipped."""
    kind = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[model.cell]
    own: dict[str, Any] = {"lstm": {"proj_size": model.projection}, "rnn": {"nonlinearity": model.activation}}
    module: nn.RNNBase = kind(
        model.input,
        model.hidden,
        num_layers=model.layers,
        bias=model.bias,
        bidirectional=model.direction == "bidirectional",
        dtype=dtype,
        **own.get(model.cell, {}),
    )
    module.load_state_dict(dict(weights))
    return module.eval().requires_grad_(False)


def uses_onednn(request: Request) -> bool:
    """Whether the operator may come to oneDNN's LSTM, which knows neither a projection nor float64."""
    known = request.model.cell == "lstm" and not request.model.projection and request.precision.compute != "float64"
    return known and request.strategy.chunk >= ONEDNN_FROM


class Library(nn.Module):
    """forward(x, h, c) gives (y, h, c) of a library module; without a state, forward(x) gives y from zeros."""

    def __init__(self, module: nn.RNNBase, flips: bool) -> None:
        super().__init__()
        self._rnn = module
        self._flips = flips

    def forward(self, x: Tensor, *state: Tensor) -> Tensor | tuple[Tensor, ...]:
        y, after = self._rnn(x.flip(0) if self._flips else x, _as_nn_takes_it(state))
        if self._flips:
            y = y.flip(0)
        if not state:
            return y  # type: ignore[no-any-return]
        return (y, *after) if len(state) == 2 else (y, after)


def _as_nn_takes_it(state: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...] | None:
    return state if len(state) == 2 else state[0] if state else None
