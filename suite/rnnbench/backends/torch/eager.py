"""Route eager: operators called from Python, one by one; nn's own RNN, or the cell authored as a loop."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from rnnbench.backends.base import Artifact, OperationStage, Request
from rnnbench.backends.torch.fused import FusedStream, dispatched, lowered
from rnnbench.backends.torch.library import ONEDNN_FROM, library_module, uses_onednn
from rnnbench.backends.torch.looped import LoopedStream
from rnnbench.backends.torch.packed import PackedStream
from rnnbench.backends.torch.store import Kept, kept, sha256, source_digest
from rnnbench.backends.torch.stream import DTYPES, Opener, Stream, inference


def build(request: Request, cache: Path) -> tuple[Kept, Opener]:
    """The prepared weights in the cache, and what opens a stream over them."""
    dtype = DTYPES[request.precision.compute]
    source = source_digest(request)
    if request.strategy.time == "fused":
        found = kept(cache, source, lambda path: _make_fused(request, dtype, path, source))
        with inference(True):
            module = library_module(request.model, dtype, torch.load(found.path))
        return found, lambda: _library_stream(request, module, dtype)
    found = kept(cache, source, lambda path: _make_looped(request, dtype, path, source))
    with inference(True):
        constants = torch.load(found.path)
    return found, lambda: LoopedStream(request, dtype, constants)


def _library_stream(request: Request, module: nn.RNNBase, dtype: torch.dtype) -> Stream:
    return PackedStream(request, module, dtype) if request.ragged else FusedStream(request, module, dtype)


def _make_fused(request: Request, dtype: torch.dtype, path: Path, source: str) -> Artifact:
    model = request.model
    weights = {name: torch.tensor(array, dtype=dtype) for name, array in request.weights.named(model)}
    stream = _library_stream(request, library_module(model, dtype, weights), dtype)
    x = torch.zeros(request.strategy.chunk, request.batch, model.input, dtype=dtype)
    lengths = _of_different_lengths(request) if request.ragged else None
    kernels = dispatched(partial(stream.step, x, lengths))
    payload = _saved(weights, path)
    onednn = request.ragged or uses_onednn(request)
    if request.ragged:
        note = "rows are packed, longest first; a bound call finds them packed, and unpacks y"
    elif onednn:
        note = f"oneDNN's LSTM packs its weights in every call: it pays from {ONEDNN_FROM} steps a call on"
    else:
        note = "the operator loops in C++ over the kernels of a step"
    return Artifact(
        source_digest=source,
        digest=sha256(source, *(f"{name} {count}" for name, count in kernels.items())),
        nbytes=len(payload),
        operations={OperationStage.COMPILED: kernels},
        lowered=lowered(model, kernels),
        origin="library",
        math="exact",
        flags=(f"mkldnn={'on' if onednn else 'off'}",),
        notes=(note, "bound calls go to the operator, past nn's checks of its arguments"),
    )


def _of_different_lengths(request: Request) -> Tensor:
    """Where all rows of a packed chunk have one length, and only there, torch takes oneDNN's LSTM."""
    return (request.strategy.chunk - torch.arange(request.batch)).clamp(min=1)


def _make_looped(request: Request, dtype: torch.dtype, path: Path, source: str) -> Artifact:
    stream = LoopedStream(request, dtype)
    payload = _saved(stream.constants, path)
    return Artifact(
        source_digest=source,
        digest=sha256(source, *stream.listing()),
        nbytes=len(payload),
        operations=stream.operations(),
        lowered=stream.lowered(),
        origin="authored",
        math="exact",
        notes=(
            "the input projection of a chunk is one product before its loop",
            "every operation writes a tensor allocated beforehand; a product and the sum after it are one call",
        ),
    )


def _saved(tensors: dict[str, Tensor] | list[Tensor], path: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    path.write_bytes(buffer.getvalue())
    return buffer.getvalue()
