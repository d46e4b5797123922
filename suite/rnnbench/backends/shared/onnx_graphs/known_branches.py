"""An If whose condition follows from constants or from fixed sizes is replaced by the branch that runs.

Runtimes do so when they optimise a graph. ONNX Runtime (1.31) dies of it where such Ifs are nested
(docs/upstream/onnxruntime-nested-if.md). With fixed sizes the other branch may make no sense, as that for another rate,
and OpenVINO (2026.4) does not read it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from math import prod
from typing import Any

import numpy as np

from rnnbench.model_files import opset_version, subgraphs

BRANCH = "~branch/"
"""Before the names of what was in a branch, with its number."""
_SMALL = 64
"""Elements of the largest value that a condition is computed from."""
_COMPUTED = frozenset(
    (
        *("Constant", "Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Gather", "Concat", "Slice", "Where"),
        *("Equal", "Not", "And", "Or", "Xor", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
        *("Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs", "Min", "Max"),
        *("ReduceProd", "ReduceSum", "ReduceMin", "ReduceMax"),
    )
)
"""Operators between a constant and a condition."""
_OF_SIZES = frozenset(("Shape", "Size"))
"""Operators whose result follows from the sizes of what they read."""
_KINDS = ("BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FLOAT", "DOUBLE")
_OWN = ("", "ai.onnx")
Values = Mapping[str, np.ndarray]
Sizes = Mapping[str, tuple[int, ...]]


def with_known_branches(model: Any) -> Any:
    """The `onnx.ModelProto` after ONNX's shape inference, without such nodes. Raises what the inference raises.

    A branch that takes the place of its If may hold an If by a size that only then is known.
    """
    from onnx import shape_inference

    branches = _Branches(opset_version(model))
    branches.put(model.graph, {}, {})
    while True:
        model = shape_inference.infer_shapes(model, data_prop=True)
        if not branches.put(model.graph, {}, _sizes(model.graph)):
            return model


class _Branches:
    """Branches that were put in the place of their Ifs, in one graph and in the graphs inside it."""

    def __init__(self, opset: int) -> None:
        self._opset, self._numbers = opset, count()

    def put(self, graph: Any, around: Values, sizes: Sizes) -> bool:
        """Replace Ifs of the graph and of the graphs inside it. Returns whether there was one.

        `around` has the known values that the graph may take from around it, and `sizes` the sizes of values.
        """
        known = {**around, **_small(graph.initializer)}
        waiting, kept, found = deque(graph.node), [], False
        while waiting:
            node = waiting.popleft()
            if (branch := _known_branch(node, known)) is not None:
                nodes, weights = _put(node, branch, f"{BRANCH}{next(self._numbers)}/")
                waiting.extendleft(reversed(nodes))
                graph.initializer.extend(weights)
                known |= _small(weights)
                found = True
                continue
            for inner in subgraphs(node):
                found |= self.put(inner, known, sizes)
            known |= _computed(node, known, sizes, self._opset)
            kept.append(node)
        del graph.node[:]
        graph.node.extend(kept)
        return found


def _known_branch(node: Any, known: Values) -> Any | None:
    """The branch of an If that runs in every call; None where it is not known."""
    if node.op_type != "If" or node.domain not in _OWN or node.input[0] not in known:
        return None
    wanted = "then_branch" if bool(known[node.input[0]].all()) else "else_branch"
    (branch,) = (each.g for each in node.attribute if each.name == wanted)
    return None if branch.sparse_initializer else branch


def _sizes(graph: Any) -> dict[str, tuple[int, ...]]:
    """The sizes of values that have all of them fixed, by what ONNX's shape inference has found."""
    found = {}
    for value in (*graph.input, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            if all(dim.HasField("dim_value") for dim in dims):
                found[value.name] = tuple(dim.dim_value for dim in dims)
    return found | {weight.name: tuple(weight.dims) for weight in graph.initializer}


def _small(weights: Iterable[Any]) -> dict[str, np.ndarray]:
    """The values of those from which a condition may be computed."""
    from onnx import TensorProto, numpy_helper

    kinds = {getattr(TensorProto, name) for name in _KINDS}
    few = (each for each in weights if prod(each.dims) <= _SMALL and each.data_type in kinds)
    return {each.name: numpy_helper.to_array(each) for each in few}


def _computed(node: Any, known: Values, sizes: Sizes, opset: int) -> dict[str, np.ndarray]:
    """What a node gives in every call, where that is known and small."""
    from onnx.reference import ReferenceEvaluator

    given = _known_inputs(node, known, sizes)
    if given is None or _is_large(node):
        return {}
    try:
        made = ReferenceEvaluator(node, opsets={"": opset}).run(None, given)
    except Exception:  # noqa: BLE001 a node that ONNX's evaluator does not compute gives nothing that is known
        return {}
    values = {name: np.asarray(value) for name, value in zip(node.output, made, strict=True)}
    return {name: value for name, value in values.items() if value.size <= _SMALL}


def _known_inputs(node: Any, known: Values, sizes: Sizes) -> dict[str, np.ndarray] | None:
    """What a node reads, where its result follows from that; None where it does not."""
    names = [name for name in node.input if name]
    if node.domain not in _OWN:
        return None
    if node.op_type in _OF_SIZES and names[0] in sizes:
        return {names[0]: np.broadcast_to(np.False_, sizes[names[0]])}
    if node.op_type not in _COMPUTED or any(name not in known for name in names):
        return None
    if node.op_type == "Div" and any((known[name] <= 0).any() for name in names):
        return None  # ONNX's evaluator rounds a quotient of whole numbers down, and runtimes towards zero.
    return {name: known[name] for name in names}


def _is_large(node: Any) -> bool:
    return any(prod(each.t.dims) > _SMALL for each in node.attribute if each.HasField("t"))


def _put(node: Any, branch: Any, prefix: str) -> tuple[list[Any], list[Any]]:
    """Nodes and weights in the place of an If: those of its branch, and what gives its outputs their names."""
    from onnx import TensorProto, helper

    own = [*(each.name for each in branch.initializer), *(name for each in branch.node for name in each.output)]
    names = {name: prefix + name for name in own if name}
    nodes = [type(node).FromString(each.SerializeToString()) for each in branch.node]
    _rename_read(nodes, names)
    for each in nodes:
        each.name = each.name and prefix + each.name  # A name may be empty, but is no other node's.
        each.output[:] = [names.get(name, name) for name in each.output]
    weights = [TensorProto.FromString(each.SerializeToString()) for each in branch.initializer]
    for each in weights:
        each.name = names[each.name]
    ends = zip(branch.output, node.output, strict=True)
    nodes += [
        helper.make_node("Identity", [names.get(made.name, made.name)], [output], name=f"{prefix}{output}")
        for made, output in ends
        if output
    ]
    return nodes, weights


def _rename_read(nodes: Sequence[Any], names: Mapping[str, str]) -> None:
    """New names of what these nodes read, and of what all graphs in them take from around them."""
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        for graph in subgraphs(node):
            _rename_read(graph.node, names)
            made = {name for each in graph.node for name in each.output}
            for value in graph.output:
                value.name = value.name if value.name in made else names.get(value.name, value.name)
