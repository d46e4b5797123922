"""Branches and loops of a `.pt2` file: which value goes where, and calling them.

Their graphs use no values but what the node gives them, and write none of these.
Source: torch/_higher_order_ops/{cond,while_loop,scan,map}.py (torch 2.13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.pt2.graph import Pt2Node
from rnnbench.model_files.formats.pt2.operators import require_torch

Called = Callable[..., Sequence[Any]]
"""A graph as a function: of its inputs, to its outputs."""
CONTROL = {"cond": (2, 1), "while_loop": (2, 2), "scan": (1, 3), "map_impl": (1, 2)}
"""Operators that call graphs of the file: how many graphs they take, and how many lists of values."""
_WHILE = "while_loop"
_LOOPS = {_WHILE: "Loop", "scan": "Scan"}
"""Loops that hand values on from pass to pass, and what ONNX calls them."""


def entering(node: Pt2Node) -> Iterator[tuple[Any, str | None]]:
    """What the node takes, each with the input of its graphs that it is, or of whose parts it is made."""
    taken = [value for arg in node.args if isinstance(arg, list) for value in arg]
    for graph in node.graphs:
        yield from zip(taken, graph.inputs, strict=True)


def leaving(node: Pt2Node) -> Iterator[tuple[Any, str]]:
    """What its graphs give, each with the output of the node that is made of it."""
    for graph in node.graphs[node.operator == _WHILE :]:
        yield from zip(graph.outputs, node.outputs, strict=True)


def carried(node: Pt2Node) -> tuple[str, list[tuple[Any, str]]]:
    """The kind of a loop, and the first and last of the values that it hands on from pass to pass."""
    lists = [arg for arg in node.args if isinstance(arg, list)]
    first = lists[0] if node.operator in _LOOPS else []
    return _LOOPS.get(node.operator, ""), list(zip(first, node.outputs, strict=False))


def torchs_own(name: str) -> Called:
    """The operator of torch, which a tracer keeps as a branch or a loop."""
    operator: Any = getattr(require_torch("torch._ops").ops.higher_order, name)
    if name != _WHILE:
        return operator  # type: ignore[no-any-return]

    def called(condition: Called, body: Called, *lists: Sequence[Any]) -> Sequence[Any]:
        result: Sequence[Any] = operator(lambda *values: condition(*values)[0], body, *map(tuple, lists))
        return result

    return called


class ComputedControlFlow:
    """Branches and loops in Python, one pass after the other: a method for each of `CONTROL`."""

    def __init__(self) -> None:
        self._torch = require_torch()
        self._passes = 0

    def begin(self) -> None:
        """A call of the file begins. Its loops have `limits.PASSES` together."""
        self._passes = 0

    def cond(self, chosen: Any, true: Called, false: Called, values: Sequence[Any]) -> Sequence[Any]:
        return self._of_their_own((true if bool(chosen) else false)(*values))

    def while_loop(
        self, condition: Called, body: Called, values: Sequence[Any], others: Sequence[Any]
    ) -> Sequence[Any]:
        while bool(condition(*values, *others)[0]):
            values = self._pass(body, *values, *others)
        return self._of_their_own(values)

    def scan(self, body: Called, values: Sequence[Any], xs: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
        outputs = list[Sequence[Any]]()
        for step in zip(*xs, strict=True):
            result = self._pass(body, *values, *step, *others)
            values = result[: len(values)]
            outputs.append(result[len(values) :])
        return [*self._of_their_own(values), *map(self._torch.stack, zip(*outputs, strict=True))]

    def map_impl(self, body: Called, xs: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
        return self.scan(body, (), xs, others)

    def _pass(self, body: Called, *arguments: Any) -> Sequence[Any]:
        self._passes += 1
        if self._passes > limits.PASSES:
            raise ModelFileError(f"its loops take more than {limits.PASSES:,} passes in one call")
        return body(*arguments)

    def _of_their_own(self, values: Sequence[Any]) -> Sequence[Any]:
        """What comes out may be written, and what went in stays as it is."""
        return [value.clone() if isinstance(value, self._torch.Tensor) else value for value in values]
