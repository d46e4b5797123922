"""An If whose condition follows from constants, as from a sample rate, is replaced by the branch that runs.

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

BRANCH = "~branch/"
"""Before the names of what was in a branch, with its number."""
_SMALL = 64
"""Elements of the largest value that a condition is computed from."""
_COMPUTED = frozenset(
    (
        *("Constant", "Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Gather"),
        *("Equal", "Not", "And", "Or", "Xor", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
    )
)
"""Operators between a constant and a condition."""
_KINDS = ("BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FLOAT", "DOUBLE")
_OWN = ("", "ai.onnx")


def put_known_branches(graph: Any, opset: int) -> None:
    """Replace such nodes of an `onnx.GraphProto`, those in the branches that take their place included."""
    constants = _small(graph.initializer)
    waiting, kept, numbers = deque(graph.node), [], count()
    while waiting:
        node = waiting.popleft()
        if node.op_type == "If" and node.domain in _OWN and node.input[0] in constants:
            wanted = "then_branch" if bool(constants[node.input[0]].all()) else "else_branch"
            (branch,) = (attribute.g for attribute in node.attribute if attribute.name == wanted)
            if not branch.sparse_initializer:
                nodes, weights = _put(node, branch, f"{BRANCH}{next(numbers)}/")
                waiting.extendleft(reversed(nodes))
                graph.initializer.extend(weights)
                constants |= _small(weights)
                continue
        constants |= _computed(node, constants, opset)
        kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)


def _small(weights: Iterable[Any]) -> dict[str, np.ndarray]:
    """The values of those from which a condition may be computed."""
    from onnx import TensorProto, numpy_helper

    kinds = {getattr(TensorProto, name) for name in _KINDS}
    small = (weight for weight in weights if prod(weight.dims) <= _SMALL and weight.data_type in kinds)
    return {weight.name: numpy_helper.to_array(weight) for weight in small}


def _computed(node: Any, known: Mapping[str, np.ndarray], opset: int) -> dict[str, np.ndarray]:
    """What a node gives in every call, where that is known and small."""
    from onnx.reference import ReferenceEvaluator

    is_read = node.op_type in _COMPUTED and node.domain in _OWN
    if not is_read or not all(name in known for name in node.input) or _is_large(node):
        return {}
    try:
        results = ReferenceEvaluator(node, opsets={"": opset}).run(None, {name: known[name] for name in node.input})
    except Exception:  # noqa: BLE001 a node that ONNX's evaluator does not compute gives nothing that is known
        return {}
    values = {name: np.asarray(value) for name, value in zip(node.output, results, strict=True)}
    return {name: value for name, value in values.items() if value.size <= _SMALL}


def _is_large(node: Any) -> bool:
    return any(prod(attribute.t.dims) > _SMALL for attribute in node.attribute if attribute.HasField("t"))


def _put(node: Any, branch: Any, prefix: str) -> tuple[list[Any], list[Any]]:
    """Nodes and weights in the place of an If: those of its branch, and what gives its outputs their names."""
    from onnx import TensorProto, helper

    branch_names = [
        *(item.name for item in branch.initializer),
        *(name for item in branch.node for name in item.output),
    ]
    names = {name: prefix + name for name in branch_names if name}
    nodes = [type(node).FromString(item.SerializeToString()) for item in branch.node]
    _rename_read(nodes, names)
    for copy in nodes:
        copy.name = prefix + copy.name
        copy.output[:] = [names.get(name, name) for name in copy.output]
    weights = [TensorProto.FromString(weight.SerializeToString()) for weight in branch.initializer]
    for weight in weights:
        weight.name = names[weight.name]
    ends = zip(branch.output, node.output, strict=True)
    nodes += [
        helper.make_node("Identity", [names.get(inner.name, inner.name)], [output], name=f"{prefix}{output}")
        for inner, output in ends
        if output
    ]
    return nodes, weights


def _rename_read(nodes: Sequence[Any], names: Mapping[str, str]) -> None:
    """New names of what these nodes read, and of what all graphs in them take from around them."""
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _rename_read(graph.node, names)
                inner_names = {name for item in graph.node for name in item.output}
                for value in graph.output:
                    value.name = value.name if value.name in inner_names else names.get(value.name, value.name)
