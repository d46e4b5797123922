"""Building: ONNX Runtime optimises a graph once and writes it to a file. Imports onnx, which a run does not need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx
import onnxruntime as ort

from rnnbench.backends.base import Artifact, OperationStage, Request
from rnnbench.backends.onnxruntime.options import adds_precisely, flags, session, session_options
from rnnbench.backends.onnxruntime.placement import placement_notes, record_placement
from rnnbench.backends.shared import int8_notes, int8_operations, overflows
from rnnbench.backends.shared.onnx_graphs import (
    INT8_OPERATORS,
    Emitter,
    LoopOperator,
    SummingEmitter,
    build_graph,
    lowered,
    lowered_or_given,
    operations,
    origin,
)
from rnnbench.cases import STREAM

HOST = "cpu"
UNSIGNED = (
    "The bytes of the weights are unsigned, with a zero point of 128: ONNX Runtime adds two products of signed ones in "
    "16 bits on this processor, which has no VNNI, and the sum saturates."
)


def source_graph(request: Request, operator: LoopOperator) -> onnx.ModelProto:
    """The graph that the runtime is given. The processor has a kernel for Conv in float32 alone."""
    convolves = request.device == HOST and request.precision.uniform == "float32"
    return build_graph(request, operator, SummingEmitter if convolves else Emitter, rows_apart=True)


def optimise(request: Request, operator: LoopOperator, path: Path) -> Artifact:
    """Build the request's graph, write its optimised form to `path`, and describe both in an Artifact."""
    source = source_graph(request, operator)
    serialised = source.SerializeToString()
    options = session_options(request)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(path)
    record_placement(options, request)
    places = tuple(placement_notes(session(serialised, options, request), request))
    model = onnx.load(path)
    counted = {OperationStage.INPUT: operations(source), OperationStage.COMPILED: operations(model)}
    return Artifact(
        source_digest=hashlib.sha256(serialised).hexdigest(),
        operations=counted,
        int8_operations=int8_operations(request, counted, INT8_OPERATORS),
        lowered=lowered_or_given(request, lowered(model, request.strategy.time)),
        origin=origin(request),
        math="exact",
        flags=flags(request),
        notes=(*_notes(request), *places, *_casts(request, counted), *int8_notes(request)),
    )


def _casts(request: Request, counted: Mapping[OperationStage, Mapping[str, int]]) -> Iterator[str]:
    """Where a file is in float16: the casts that the runtime put in."""
    added = counted[OperationStage.COMPILED].get("Cast", 0) - counted[OperationStage.INPUT].get("Cast", 0)
    if request.precision.uniform == "float16" and added > 0:
        yield f"The runtime put in {added} casts: it has no kernels for float16 of the operators between them."


def _notes(request: Request) -> tuple[str, ...]:
    notes = ["All buffers are bound beforehand. Two state buffers change places: one is read, the other is written."]
    if request.strategy.state == "none":
        notes = ["All buffers are bound beforehand."]
    if request.file is not None:
        notes.append("The file's own nodes, between nodes that lay its arrays out.")
    elif request.strategy.time != "fused" and not request.model.is_exact:
        notes.append("The input projection of all steps of a call is one product, outside any loop.")
    if request.strategy.launch != STREAM:
        notes.append("Each binding has a CUDA graph of its own, which its first call records.")
    if adds_precisely(request) or (request.precision.weights == "int8" and overflows()):
        notes.append(UNSIGNED)
    return tuple(notes)
