"""nn.LSTM, nn.GRU and nn.RNN: the module for a model, and a form of it that torch's compilers and exporters trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rnnbench.backends.base import Request
from rnnbench.backends.torch.device import CPU
from rnnbench.rnn import Model

ONEDNN_KERNEL = "mkldnn_rnn_layer"
CUDNN_KERNEL = "_cudnn_rnn"
"""All layers and steps in one call of cuDNN."""
ASKED = {"float16": "_is_mkldnn_fp16_supported", "bfloat16": "_is_mkldnn_bf16_supported"}
"""The operators with which torch asks whether oneDNN has a type."""


def library_module(
    model: Model, dtype: torch.dtype, weights: Mapping[str, Tensor], device: torch.device = CPU
) -> nn.RNNBase:
    """nn's module for a model. nn has none that only runs backwards: callers flip x and y around the forward module.

    It is made on the device: nn then lays its weights into one piece of memory, as cuDNN wants them.
    """
    kind = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[model.cell]
    cell_options: dict[str, Any] = {"lstm": {"proj_size": model.projection}, "rnn": {"nonlinearity": model.activation}}
    module: nn.RNNBase = kind(
        model.input,
        model.hidden,
        num_layers=model.layers,
        bias=model.bias,
        bidirectional=model.direction == "bidirectional",
        dtype=dtype,
        device=device,
        **cell_options.get(model.cell, {}),
    )
    module.load_state_dict(dict(weights))
    return module.eval().requires_grad_(False)


def uses_onednn(request: Request) -> bool:
    """Whether the operator may use oneDNN's LSTM, which supports neither a projection nor float64, and no GPU."""
    model = request.stack
    supported = request.device == "cpu" and model.cell == "lstm" and not model.projection
    return supported and _in_onednn(request.precision.compute) and request.strategy.chunk >= onednn_min_steps(request)


def _in_onednn(dtype: str) -> bool:
    """Whether oneDNN's LSTM has this type on this processor. float16 and bfloat16 need instructions for them."""
    if dtype not in ASKED:
        return dtype == "float32"
    return torch._C._has_mkldnn and bool(getattr(torch.ops.mkldnn, ASKED[dtype])())


def onednn_min_steps(request: Request) -> int:
    """The steps of a call from which oneDNN's LSTM is the faster one. It packs its weights in every call.

    The figures are in `docs/backends/torch.md`.
    """
    large = request.stack.hidden > 256
    if request.batch > 1:
        # Inductor's steps of small layers are faster than those of the loop in C++.
        return 4 if large or request.route == "eager" else 8
    return 24 if large and not torch.backends.cpu.get_cpu_capability().startswith("AVX512") else 8


class Library(nn.Module):
    """forward(x, h, c) returns (y, h, c) of nn's module. Without a state, forward(x) starts from zeros and gives y."""

    def __init__(self, module: nn.RNNBase, flips: bool) -> None:
        super().__init__()
        self._rnn = module
        self._flips = flips

    def forward(self, x: Tensor, *state: Tensor) -> Tensor | tuple[Tensor, ...]:
        y, after = self._rnn(x.flip(0) if self._flips else x, _nn_state(state))
        if self._flips:
            y = y.flip(0)
        if not state:
            return y  # type: ignore[no-any-return]
        return (y, *after) if len(state) == 2 else (y, after)


def _nn_state(state: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...] | None:
    """The state as nn's modules take it: (h, c), h or None."""
    return state if len(state) == 2 else state[0] if state else None
