"""Converted models in the cache, with the facts of their artifacts: a second build needs no TensorFlow."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from rnnbench.backends.base import BuildError, OperationStage, Request
from rnnbench.backends.litert.shared_weights import repeats_much, why_not_compiled
from rnnbench.disk import read_cached, write_bytes, write_text

FUSED = "UNIDIRECTIONAL_SEQUENCE_LSTM"
"""The fused operator, by LiteRT's name."""
PRODUCT, INT8_PRODUCT = "FULLY_CONNECTED", "FULLY_CONNECTED int8"
"""The product by a constant matrix, by LiteRT's name, and its name in a record where the matrix is in int8."""


@dataclass(frozen=True)
class Facts:
    source_digest: str
    """The digest of the model as the converter made it."""
    operations: dict[OperationStage, dict[str, int]]
    lowered: str
    fused_state: list[list[int]]
    """The tensors h and c of each fused operator; empty where there is none."""
    why_not_compiled: str
    """Why the interpreter runs a program whose copies should share their weights. Empty for all others."""


@dataclass(frozen=True)
class Stored:
    path: Path
    """The .tflite."""
    facts: Facts
    cached: bool


def load_or_build(request: Request, cache: Path) -> Stored:
    """The request's model, converted or found in `cache`. Raises BuildError."""
    stem = cache / f"litert-{_key(request)}"
    path, facts = stem.with_suffix(".tflite"), stem.with_suffix(".json")
    cached = read_cached(facts, _read_facts) if path.exists() else None
    if cached is None:
        data, new_facts = _converted(request)
        write_bytes(path, data)
        if repeats_much(request):
            new_facts = replace(new_facts, why_not_compiled=why_not_compiled(path, request.threads))
        write_text(facts, json.dumps(asdict(new_facts)))
    return Stored(path, cached or _read_facts(facts), cached is not None)


def _read_facts(file: Path) -> Facts:
    return Facts(**json.loads(file.read_text()))


def _key(request: Request) -> str:
    model, weights = request.stack.model_dump_json(), request.weights.digest(request.model)
    versions = version("tensorflow"), version("ai-edge-litert")
    fields = [*versions, model, weights, request.strategy, request.batch, request.precision]
    return hashlib.sha256(repr(fields).encode()).hexdigest()[:32]


def _converted(request: Request) -> tuple[bytes, Facts]:
    from rnnbench.backends.litert.convert import convert
    from rnnbench.backends.litert.flatbuffer import Flatbuffer

    converted = convert(request)
    model = Flatbuffer(converted)
    model.set_cell_clip(request.stack.cell_clip)
    lowered, state = model.lowered(request.stack), model.fused_state()
    if request.strategy.time == "fused" and len(state) != request.stack.layers * request.stack.directions:
        raise BuildError("the converter did not make the operator UNIDIRECTIONAL_SEQUENCE_LSTM from every layer")
    if request.precision.weights == "int8":
        model.set_int8_weights(request.weights)
    source_digest = hashlib.sha256(converted).hexdigest()
    return model.pack(), Facts(source_digest, {OperationStage.COMPILED: model.operations()}, lowered, state, "")
