"""The operators of torch that a `.pt2` file names, and which values of its graph they write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.pt2.graph import Pt2Graph, Pt2Node, Ref, values_in
from rnnbench.optional import require

EXTRA = "torch"
_FRESH = frozenset(("lift_fresh",))
"""Operators that give what they get, as if it were a copy."""
_WRITE_NOTHING = frozenset(("detach_", "requires_grad_"))
_OTHER_TYPES = frozenset(("view", "real", "imag", "view_as_real", "view_as_complex"))
"""Operators whose result may have elements of another type, in the same memory."""

WRITES_INSIDE = (
    "a branch or the body of a loop writes what it is given in place, so a state may be in it; export a network whose "
    "branches and loops give new values as results"
)


def require_torch(module: str = "torch") -> Any:
    """The package torch, or a module of it. Raises MissingExtraError."""
    return require(module, EXTRA, "computing a .pt2 file")


def operator_of(node: Pt2Node) -> Any:
    """Torch's operator. Raises ModelFileError where this torch has none of that name."""
    packet = getattr(require_torch().ops.aten, node.operator, None)
    if not isinstance(packet, require_torch("torch._ops").OpOverloadPacket) or node.overload not in packet.overloads():
        raise ModelFileError(f"this torch has no operator aten.{node.operator}.{node.overload}")
    return getattr(packet, node.overload)


def is_composed(node: Pt2Node) -> bool:
    """Whether torch writes the operator as others when it is called, and autocast casts what those take."""
    has, name = require_torch()._C._dispatch_has_kernel_for_dispatch_key, operator_of(node).name()
    return bool(has(name, "CompositeImplicitAutograd") and not has(name, "AutocastCPU"))


def written(
    nodes: Iterable[Pt2Node], given: Collection[str], types: Mapping[str, int]
) -> tuple[set[str], Collection[str]]:
    """Which of the values `given` operators write, and all values that share their memory.

    Operators write themselves or through a view, by torch's declarations of them. `types` are the types of elements by
    value: where torch may give a view or a copy, another type is a copy.
    """
    whose: dict[str, set[str]] = {value: {value} for value in given}
    written = set[str]()
    for node in nodes:
        for graph in node.graphs:
            _check_writes_nothing(graph, types)
        if not node.overload:
            continue
        declared = operator_of(node)._schema
        shared = set[str]()
        for argument, names in _arguments(declared, node):
            if argument.alias_info is None:
                continue
            roots = set[str]().union(*(whose.get(name, ()) for name in names))
            shared |= roots
            if argument.alias_info.is_write and node.operator not in _WRITE_NOTHING:
                written |= roots
        if shared and node.operator not in _FRESH and any(result.alias_info is not None for result in declared.returns):
            whose |= {output: shared for output in node.outputs if _may_share(node, output, types)}
    return written, whose.keys()


def _check_writes_nothing(graph: Pt2Graph, types: Mapping[str, int]) -> None:
    """Raises ModelFileError where a branch or the body of a loop writes what it is given."""
    found, _ = written(graph.nodes, {name for name in graph.inputs if name}, types)
    if found:
        raise ModelFileError(WRITES_INSIDE)


def _arguments(declared: Any, node: Pt2Node) -> Iterator[tuple[Any, list[str]]]:
    """What torch declares of each argument, and the values that the node has there."""
    for place, argument in enumerate(declared.arguments):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        yield argument, [*values_in([value])]


def _may_share(node: Pt2Node, output: str, types: Mapping[str, int]) -> bool:
    sources = [argument.name for argument in node.args[:1] if isinstance(argument, Ref)]
    same = all(types.get(source) == types.get(output) for source in sources)
    return same or node.operator in _OTHER_TYPES
