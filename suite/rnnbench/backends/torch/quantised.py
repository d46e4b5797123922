"""Route eager, int8: the dynamic LSTM and GRU of torch.ao, as `quantize_dynamic` makes them.

They quantise x once a call, and h in each step, with one scale for all rows, to 7 bits: torch's `reduce_range`, which
its modules always set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.ao.nn.quantized.dynamic as dynamic
from torch import Tensor

from rnnbench.backends.base import Artifact, OperationStage, Request
from rnnbench.backends.shared import int8_notes, int8_operations
from rnnbench.backends.torch.counting import operator_kernels
from rnnbench.backends.torch.fused import FusedStream, lowered
from rnnbench.backends.torch.store import CachedBuild, Described, load_or_build
from rnnbench.backends.torch.stream import Opener, inference
from rnnbench.rnn import Model, in_int8

REDUCE_RANGE = True
"""As torch's own modules have it."""
SCALE = ".scale"
OPERATORS = ("quantized_lstm", "quantized_gru")


def int8_weights(request: Request) -> dict[str, Tensor]:
    """The arrays of a request by PyTorch's names, matrices in int8, each with its scale beside it."""
    arrays = {}
    for name, array in request.weights.named(request.model):
        if array.ndim == 1:
            arrays[name] = torch.tensor(array)
            continue
        q, scale = in_int8(array)
        arrays[name], arrays[name + SCALE] = torch.tensor(q), torch.tensor(scale, dtype=torch.float64)
    return arrays


def quantised_module(model: Model, weights: Mapping[str, Tensor]) -> Any:
    """torch.ao's module over these weights."""
    kind: Any = {"lstm": dynamic.LSTM, "gru": dynamic.GRU}[model.cell]
    bidirectional = model.direction == "bidirectional"
    module = kind(model.input, model.hidden, model.layers, model.bias, bidirectional=bidirectional)
    suffixes = [f"_l{layer}{way}" for layer in range(model.layers) for way in ("", "_reverse")[: model.directions]]
    packed_parameter: Any = dynamic.modules.rnn.PackedParameter
    cells = [packed_parameter(_cell(model, weights, suffix)) for suffix in suffixes]
    module._all_weight_values = torch.nn.ModuleList(cells)
    return module.eval()


def _cell(model: Model, weights: Mapping[str, Tensor], suffix: str) -> Any:
    packed, biases = [], []
    for part in ("ih", "hh"):
        name = f"weight_{part}{suffix}"
        scale = float(weights[name + SCALE])
        matrix = torch._make_per_tensor_quantized_tensor(weights[name], scale, 0)
        biases.append(weights.get(f"bias_{part}{suffix}", torch.zeros(len(matrix))))
        packed.append(torch.ops.quantized.linear_prepack(matrix, biases[-1]))
    return torch.ops.quantized.make_quantized_cell_params_dynamic(*packed, *biases, REDUCE_RANGE)


class QuantisedStream(FusedStream):
    """As nn's module with its state. A prepared call uses the operator of torch.ao's module."""

    def __init__(self, request: Request, module: Any) -> None:
        super().__init__(request, module, torch.float32)
        model = request.stack
        self._as_it_is = True  # oneDNN's LSTM has nothing to do with these operators.
        self._operator = _OPERATORS[model.cell]
        cells = [weight.param for weight in module._all_weight_values]
        self._settings = (cells, True, model.layers, 0.0, False, model.direction == "bidirectional", False)


def _lstm(*arguments: Any) -> tuple[Tensor, ...]:
    result: tuple[Tensor, ...] = torch.quantized_lstm(*arguments, dtype=torch.qint8, use_dynamic=True)
    return result


_OPERATORS: dict[str, Callable[..., tuple[Tensor, ...]]] = {"lstm": _lstm, "gru": torch.quantized_gru}


def build(request: Request, cache: Path, source: str) -> tuple[CachedBuild, Opener]:
    """The int8 weights in the cache, and the function that opens a stream over them."""
    weights = load_or_build(cache, source, lambda path: _make(request, path, source))
    with inference(True):
        module = quantised_module(request.stack, torch.load(weights.path))
    return weights, lambda: QuantisedStream(request, module)


def _make(request: Request, path: Path, source: str) -> Described:
    model, weights = request.stack, int8_weights(request)
    stream = QuantisedStream(request, quantised_module(model, weights))
    x = torch.zeros(request.strategy.chunk, request.batch, model.input)
    kernels = operator_kernels(stream, x, ragged=False)
    torch.save(weights, path)
    operations = {OperationStage.COMPILED: kernels}
    artifact = Artifact(
        source_digest=source,
        operations=operations,
        int8_operations=int8_operations(request, operations, OPERATORS),
        lowered=lowered(model, kernels),
        origin="library",
        math="exact",
        flags=(f"qengine={torch.backends.quantized.engine}", f"reduce_range={REDUCE_RANGE}"),
        notes=(
            *int8_notes(request),
            "the operator is a loop in C++ over the kernels of one step",
            "torch.ao quantises x and h to 7 of the 8 bits (reduce_range)",
        ),
    )
    return artifact, "\n".join(f"{name} {count}" for name, count in kernels.items())
