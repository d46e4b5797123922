"""Building: a model is compiled once and exported. Runs always load the exported file."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from rnnbench.backends.base import Artifact, BuildError, OperationStage, Request
from rnnbench.backends.openvino.device import config, export, save
from rnnbench.backends.openvino.variables import called_by_python
from rnnbench.backends.shared import describe_lowered, int8_notes, int8_operations
from rnnbench.backends.shared.onnx_graphs import (
    NEXT,
    ConvolvingEmitter,
    build_graph,
    copies_named,
    lowered_or_given,
    origin,
)
from rnnbench.model_files import FileNetwork

SEQUENCE = "RNNSeq"
FUSED = (SEQUENCE, "RNNCell")
LOOP = "TensorIterator"
"""Types of nodes in a compiled model. ONNX's Scan and Loop both become a TensorIterator."""
INT8 = ("i8", "u8")
"""The precisions that the device gives for a product with int8 weights; they are added to the name of its type."""
INT8_OPERATIONS = tuple(f"{kind} {precision}" for kind in ("FullyConnected", "MatMul") for precision in INT8)


def compile_model(request: Request, folder: Path) -> Artifact:
    """Compile the request's model, write the files to load into `folder`, and describe both in an Artifact."""
    source, model = source_model(request)
    operations = {OperationStage.INPUT: _counted(node.get_type_name() for node in _nodes(model))}
    loops = [len(copies_named(n.get_friendly_name() for n in _nodes(body))) for body in _bodies(model)]
    try:
        compiled = ov.Core().compile_model(model, "CPU", config(request))
    except RuntimeError as error:
        raise BuildError(f"OpenVINO refused the model: {error}") from error
    nodes = [_Executed(node) for node in compiled.get_runtime_model().get_ordered_ops()]
    misexported = _is_misexported(request, nodes)
    if misexported:
        save(model, folder)
    else:
        export(compiled, folder)
    operations[OperationStage.COMPILED] = _counted(node.kind for node in nodes)
    return Artifact(
        source_digest=hashlib.sha256(source).hexdigest(),
        operations=operations,
        int8_operations=int8_operations(request, operations, INT8_OPERATIONS),
        lowered=lowered_or_given(request, _lowered(nodes, loops, request.strategy.time)),
        origin=origin(request),
        math="exact",
        flags=tuple(f"{name}={value}" for name, value in config(request).items()),
        notes=(*_notes(request, misexported), *int8_notes(request)),
    )


def source_model(request: Request) -> tuple[bytes, Any]:
    """The bytes of the model of a request, and the model itself before it is compiled."""
    if request.route == "onnx":
        source, model = _imported(request)
    elif request.file is not None:
        source, model = _from_file(request, request.file)
    else:
        source, model = _authored(request)
    _name_only_ends(model)
    return source, model


def _name_only_ends(model: Any) -> None:
    """Where OpenVINO joins two tensors, the joint one is called by the first name of both, so others have none."""
    ends = {name for port in (*model.inputs, *model.outputs) for name in port.get_names()}
    for node in _nodes_and_branches(model):
        for output in node.outputs():
            output.get_tensor().set_names(output.get_names() & ends)


def _nodes_and_branches(model: Any) -> Iterator[Any]:
    """Its nodes, and those of the branches of an If, which OpenVINO puts in its place where the condition is known."""
    for node in model.get_ops():
        yield node
        if node.get_type_name() == "If":
            for branch in range(2):
                yield from _nodes_and_branches(node.get_function(branch))


class _Executed:
    """A node of a compiled model: its type, and the names of the source nodes that it was made from."""

    def __init__(self, node: Any) -> None:
        facts = node.get_rt_info()
        self.kind: str = facts["layerType"].astype(str)
        if (precision := facts["runtimePrecision"].astype(str)) in INT8:
            self.kind = f"{self.kind} {precision}"
        self.names: list[str] = facts["originalLayersNames"].astype(str).split(",")
        inputs = [port.get_partial_shape() for port in node.inputs()]
        self.has_rows_and_steps = self.kind == SEQUENCE and all(size != 1 for size in list(inputs[0])[:2])
        """Whether it is a sequence operator over several rows and several steps."""


def _is_misexported(request: Request, nodes: Iterable[_Executed]) -> bool:
    """Whether a compiled model computes something else after its export and import (2026.4).

    The device removes the transposes that the importer puts around ONNX's operators, and marks the operator to run over
    the first axis. The mark is not in the export, so batch and steps change places. Where one of them is 1, this makes
    no difference. Bidirectional operators are not marked. An operator of a model file has rows and steps of its own.
    """
    fused = request.route == "onnx" and request.strategy.time == "fused"
    if request.file is None and not (fused and request.stack.direction != "bidirectional"):
        return False
    return any(node.has_rows_and_steps for node in nodes)


def _lowered(nodes: list[_Executed], loops: list[int], time: str) -> str:
    """How the time steps were lowered. `loops` has the copies of the cell in each loop of the source model.

    A compiled model shows its loops, but not their bodies. Further loops in it are operators that have no kernel on
    this device, and run as a loop over their cell.
    """
    kinds = Counter(node.kind for node in nodes)
    straight = copies_named(name for node in nodes for name in node.names)
    fused = any(kinds[kind] for kind in FUSED)
    loops = (loops + [1] * kinds[LOOP])[: kinds[LOOP]]
    return describe_lowered(loops, len(straight), fused=fused, time=time) or "unrolled 0"


def _imported(request: Request) -> tuple[bytes, Any]:
    """The ONNX graph, read by OpenVINO's importer. With state `stateful`, its state inputs become variables."""
    graph = build_graph(request, emitter=ConvolvingEmitter)
    source = graph.SerializeToString()
    try:
        model = ov.Core().read_model(source)
    except RuntimeError as error:
        raise BuildError(f"OpenVINO's importer refused the graph: {error}") from error
    # The importer names a node by its output. An output of the graph has a name without the number of the copy.
    names = {output: node.name for node in graph.graph.node for output in node.output}
    for node in model.get_ops():
        node.set_friendly_name(names.get(node.get_friendly_name(), node.get_friendly_name()))
    _make_stateful(request, model)
    return source, model


def _from_file(request: Request, network: FileNetwork) -> tuple[bytes, Any]:
    """A user's file, read by another of OpenVINO's frontends."""
    from rnnbench.backends.openvino.file_model import file_model

    source, model = file_model(request, network)
    _make_stateful(request, model)
    return source, model


def _make_stateful(request: Request, model: Any) -> None:
    """With state `stateful`, turn the state inputs of a model into variables."""
    from openvino._offline_transformations import apply_make_stateful_transformation

    if request.strategy.state == "stateful":
        names = request.model.state_shapes(request.batch)
        if request.file is not None:
            _lay_states_as_in_file(request, request.file, model)
        apply_make_stateful_transformation(model, {name: NEXT + name for name in names})


def _lay_states_as_in_file(request: Request, network: FileNetwork, model: Any) -> None:
    """Give the states the file's own shapes, so that nothing lies between a variable and the file's operators.

    A sum of reshaped x and a reshaped variable is wrong (2026.4): it is written where the variable is still read.
    """
    import openvino.opset13 as opset

    shapes = {s.name: s.before.layout(request.strategy.chunk, request.batch).split for s in network.states}
    model.reshape({name: list(shape) for name, shape in shapes.items()})
    for name, shape in shapes.items():
        result = model.output(NEXT + name).get_node()
        value = result.input_value(0)
        value.get_tensor().set_names(value.get_names() - {NEXT + name})
        while value.get_node().get_type_name() == "Reshape":  # y may be another one of the same value.
            value = value.get_node().input_value(0)
        laid = opset.reshape(value, np.array(shape, np.int64), False).output(0)
        laid.get_tensor().set_names({NEXT + name})
        result.input(0).replace_source_output(laid)


def _authored(request: Request) -> tuple[bytes, Any]:
    from rnnbench.backends.openvino.opset_model import opset_model

    model = opset_model(request)
    with tempfile.TemporaryDirectory() as folder:
        return save(model, Path(folder)), model


def _nodes(model: Any) -> Iterator[Any]:
    """Every node, including those in the bodies of loops."""
    for node in model.get_ordered_ops():
        yield node
        for body in bodies_of(node):
            yield from _nodes(body)


def _bodies(model: Any) -> list[Any]:
    """The bodies of loops."""
    return [
        node.get_function() for node in model.get_ordered_ops() if hasattr(node, "get_function") and not _is_if(node)
    ]


def bodies_of(node: Any) -> list[Any]:
    """The models inside a node: the body of a loop, both branches of an If."""
    if _is_if(node):
        return [node.get_function(branch) for branch in range(2)]
    return [node.get_function()] if hasattr(node, "get_function") else []


def _is_if(node: Any) -> bool:
    return str(node.get_type_name()) == "If"


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _notes(request: Request, misexported: bool) -> tuple[str, ...]:
    notes = []
    if request.route == "onnx" or request.file is not None:
        of_suite = "An ONNX graph of this suite, or ONNX's operator"
        what = of_suite if request.file is None else f"The user's {request.file.format} file"
        notes.append(f"{what}, read by OpenVINO's importer.")
        if request.strategy.state == "stateful":
            notes.append("OpenVINO turned the graph's state inputs and outputs into variables (make_stateful).")
    if misexported:
        notes.append("OpenVINO exports this compiled model wrongly, so every load compiles it again.")
    if request.strategy.state == "stitched":
        notes.append("Two requests alternate: each reads the state buffer that the other one writes.")
    if not called_by_python(request):
        notes.append("Calls use the C API, which makes no dictionary of the outputs.")
    if request.file is None and request.strategy.time != "fused" and not request.model.is_exact:
        notes.append("The input projection of all steps of a call is one product, outside any loop.")
    return tuple(notes)
