"""Building: a model is compiled once and exported; what runs is always loaded from what was kept."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openvino as ov

from rnnbench.backends.base import Artifact, BuildError, OperationStage, Request
from rnnbench.backends.openvino.device import config, export, misexported, save
from rnnbench.backends.shared import describe_lowered
from rnnbench.backends.shared.onnx_graphs import NEXT, build_graph, copies_named

FUSED = ("RNNSeq", "RNNCell")
LOOP = "TensorIterator"
"""Types of nodes in a compiled model; ONNX's Scan and Loop are both this one there."""


def compile_model(request: Request, folder: Path) -> Artifact:
    """Compile the request's model, leave in `folder` what can be loaded, and describe both."""
    source, model = _source(request)
    operations = {OperationStage.INPUT: _counted(node.get_type_name() for node in _nodes(model))}
    loops = [len(copies_named(n.get_friendly_name() for n in _nodes(body))) for body in _bodies(model)]
    try:
        compiled = ov.Core().compile_model(model, "CPU", config(request.threads))
    except RuntimeError as error:
        raise BuildError(f"OpenVINO refused the model: {error}") from error
    kept = save(model, folder) if misexported(request) else export(compiled, folder)
    nodes = [_Executed(node) for node in compiled.get_runtime_model().get_ordered_ops()]
    operations[OperationStage.COMPILED] = _counted(node.kind for node in nodes)
    return Artifact(
        source_digest=hashlib.sha256(source).hexdigest(),
        digest=hashlib.sha256(kept).hexdigest(),
        nbytes=len(kept),
        operations=operations,
        lowered=_lowered(nodes, loops),
        origin="library" if request.strategy.time == "fused" else "authored",
        math="exact",
        flags=tuple(f"{name}={value}" for name, value in config(request.threads).items()),
        notes=_notes(request),
    )


def _source(request: Request) -> tuple[bytes, Any]:
    return _read(request) if request.route == "onnx" else _written(request)


class _Executed:
    """A node of a compiled model: its type, and the names of the nodes that it was made of."""

    def __init__(self, node: Any) -> None:
        facts = node.get_rt_info()
        self.kind: str = facts["layerType"].astype(str)
        self.names: list[str] = facts["originalLayersNames"].astype(str).split(",")


def _lowered(nodes: list[_Executed], loops: list[int]) -> str:
    """A compiled model tells of a loop but not what is in it: `loops` has the copies in each that went in.

    Where more loops came out, they are operators that the device has no kernel for and runs as a loop over their cell.
    """
    kinds = Counter(node.kind for node in nodes)
    straight = copies_named(name for node in nodes for name in node.names)
    fused = any(kinds[kind] for kind in FUSED)
    loops = (loops + [1] * kinds[LOOP])[: kinds[LOOP]]
    return describe_lowered(loops, len(straight), fused=fused) or "unrolled 0"


def _read(request: Request) -> tuple[bytes, Any]:
    """The ONNX graph through OpenVINO's importer; its state becomes variables where the state is to be kept inside."""
    from openvino._offline_transformations import apply_make_stateful_transformation

    graph = build_graph(request)
    source = graph.SerializeToString()
    model = ov.Core().read_model(source)
    # The importer names a node by its output, which may be an output of the graph and tell of no copy.
    names = {output: node.name for node in graph.graph.node for output in node.output}
    for node in model.get_ops():
        node.set_friendly_name(names.get(node.get_friendly_name(), node.get_friendly_name()))
    if request.strategy.state == "stateful":
        names = request.model.state_shapes(request.batch)
        apply_make_stateful_transformation(model, {name: NEXT + name for name in names})
    return source, model


def _written(request: Request) -> tuple[bytes, Any]:
    from rnnbench.backends.openvino.opset_model import opset_model

    model = opset_model(request)
    with tempfile.TemporaryDirectory() as folder:
        return save(model, Path(folder)), model


def _nodes(model: Any) -> Iterator[Any]:
    """Every node, those of the bodies of loops included."""
    for node in model.get_ordered_ops():
        yield node
        if hasattr(node, "get_function"):
            yield from _nodes(node.get_function())


def _bodies(model: Any) -> list[Any]:
    return [node.get_function() for node in model.get_ordered_ops() if hasattr(node, "get_function")]


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _notes(request: Request) -> tuple[str, ...]:
    notes = []
    if request.route == "onnx":
        notes.append("An ONNX graph authored here, or ONNX's operator, read by OpenVINO's importer.")
        if request.strategy.state == "stateful":
            notes.append("OpenVINO turned the graph's state inputs and outputs into variables (make_stateful).")
    if misexported(request):
        notes.append("OpenVINO exports this compiled model wrongly, so every load compiles it anew.")
    if request.strategy.state == "stitched":
        notes.append("The state is read from one buffer and written to another by turns, by two requests.")
    if request.strategy.state != "stateful":
        notes.append("Calls go through the C API, which makes no dictionary of the outputs.")
    if request.strategy.time != "fused" and request.model.cell != "counter":
        notes.append("The input projection of all steps of a call is one product, outside any loop.")
    return tuple(notes)
