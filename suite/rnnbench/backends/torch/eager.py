"""Route eager: Python calls the operators one by one. They are nn's RNN, or those of the layers' bodies in a loop."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from rnnbench.backends.base import Artifact, OperationStage, Request
from rnnbench.backends.torch import file_program, quantised
from rnnbench.backends.torch.counting import operator_kernels
from rnnbench.backends.torch.device import CPU, device_of
from rnnbench.backends.torch.fused import FusedStream, lowered
from rnnbench.backends.torch.library import CUDNN_KERNEL, library_module, onednn_min_steps, uses_onednn
from rnnbench.backends.torch.looped import LoopedStream
from rnnbench.backends.torch.packed import PackedStream
from rnnbench.backends.torch.store import CachedBuild, Described, load_or_build, source_digest
from rnnbench.backends.torch.stream import DTYPES, Opener, Stream, inference


def build(request: Request, cache: Path) -> tuple[CachedBuild, Opener]:
    """The prepared weights in the cache, and the function that opens a stream over them."""
    if request.file is not None:
        return file_program.build(request, request.file, cache)
    source = source_digest(request)
    if request.precision.weights == "int8":
        return quantised.build(request, cache, source)
    dtype = DTYPES[request.precision.compute]
    if request.strategy.time == "fused":
        weights = load_or_build(cache, source, lambda path: _make_fused(request, dtype, path, source))
        with inference(True):
            module = library_module(request.stack, dtype, torch.load(weights.path), device_of(request))
        return weights, lambda: _library_stream(request, module, dtype)
    weights = load_or_build(cache, source, lambda path: _make_looped(request, dtype, path, source))
    with inference(True):
        constants = torch.load(weights.path, map_location=device_of(request))
    return weights, lambda: LoopedStream(request, dtype, constants)


def _library_stream(request: Request, module: nn.RNNBase, dtype: torch.dtype) -> Stream:
    return PackedStream(request, module, dtype) if request.ragged else FusedStream(request, module, dtype)


def _make_fused(request: Request, dtype: torch.dtype, path: Path, source: str) -> Described:
    model = request.stack
    weights = {name: torch.tensor(array, dtype=dtype) for name, array in request.weights.named(model)}
    device = device_of(request)
    stream = _library_stream(request, library_module(model, dtype, weights, device), dtype)
    x = torch.zeros(request.strategy.chunk, request.batch, model.input, dtype=dtype, device=device)
    kernels = operator_kernels(stream, x, ragged=request.ragged)
    torch.save(weights, path)
    cudnn, onednn = CUDNN_KERNEL in kernels, device == CPU and (request.ragged or uses_onednn(request))
    if request.ragged:
        note = "rows are packed, longest first; for bound calls they are packed beforehand, and the call unpacks y"
    elif onednn:
        note = f"oneDNN's LSTM packs its weights in every call: it is faster from {onednn_min_steps(request)} steps on"
    elif cudnn:
        note = "the operator is one call of cuDNN's RNN for all layers and steps, over weights in one piece of memory"
    else:
        note = "the operator is a loop in C++ over the kernels of one step"
    artifact = Artifact(
        source_digest=source,
        operations={OperationStage.COMPILED: kernels},
        lowered=lowered(model, kernels),
        origin="library",
        math="exact",
        flags=(f"mkldnn={'on' if onednn else 'off'}",) if device == CPU else (f"cudnn={'on' if cudnn else 'off'}",),
        notes=(note, "bound calls use the operator, without nn's checks of its arguments"),
    )
    return artifact, "\n".join(f"{name} {count}" for name, count in kernels.items())


def _make_looped(request: Request, dtype: torch.dtype, path: Path, source: str) -> Described:
    stream = LoopedStream(request, dtype)
    torch.save(stream.constants, path)
    artifact = Artifact(
        source_digest=source,
        operations=stream.operations(),
        lowered=stream.lowered(),
        origin="authored",
        math="exact",
        notes=(
            "the input projection of a chunk is one product before its loop",
            "outputs of operations are allocated beforehand; a product and the sum after it are one call",
        ),
    )
    return artifact, "\n".join(stream.listing())
