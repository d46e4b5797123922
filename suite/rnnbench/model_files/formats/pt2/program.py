"""Calling the graph of a `.pt2` file: torch's operators, one by one. No code of the file runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.formats.pt2.control_flow import ComputedControlFlow, torchs_own
from rnnbench.model_files.formats.pt2.file import read_pt2
from rnnbench.model_files.formats.pt2.graph import DTYPES, Kind, Pt2File, Pt2Graph, Pt2Node, Ref
from rnnbench.model_files.formats.pt2.operators import operator_of, require_torch
from rnnbench.model_files.formats.pt2.sizes import SIZE_OPERATORS, size_operator

Around = Callable[[Pt2Node, Callable[[], Any]], Any]


class Pt2Program:
    """The graph with its weights. `double`: in float64 wherever the file has floats, and all loops in Python."""

    def __init__(self, path: Path, *, double: bool = False) -> None:
        """Raises ModelFileError for a file that is not read, or names an operator that this torch does not have."""
        self._torch = require_torch()
        self.file: Pt2File = read_pt2(path)
        self._double = double
        self._control = ComputedControlFlow() if double else None
        self._inside = dict[int, list[tuple[Pt2Node, Callable[..., Any]]]]()
        """The nodes of branches and loops with their operators, by the identity of the graph in `file`."""
        self._nodes = self._with_operators(self.file.nodes)
        self.weights = {name: self.tensor(array, self.file.types[name]) for name, array in self.file.weights.items()}
        self._states = {before.name: (before.value, after) for before, after in self.file.states}

    def _with_operators(self, nodes: Iterable[Pt2Node]) -> list[tuple[Pt2Node, Callable[..., Any]]]:
        for graph in (graph for node in nodes for graph in node.graphs):
            self._inside[id(graph)] = self._with_operators(graph.nodes)
        return [(node, self._operator(node)) for node in nodes]

    def _operator(self, node: Pt2Node) -> Callable[..., Any]:
        if node.overload:
            return operator_of(node)  # type: ignore[no-any-return]
        if node.operator in SIZE_OPERATORS:
            return size_operator(node.operator)
        return getattr(self._control, node.operator) if self._control else torchs_own(node.operator)

    def tensor(self, array: Any, dtype: str) -> Any:
        """An array as a tensor of its own memory, in the program's type for what the file has in `dtype`."""
        tensor = self._torch.from_numpy(np.array(array, order="C"))
        return tensor.to(self._torch.float64 if self._double and dtype in FLOATS else getattr(self._torch, dtype))

    def __call__(
        self, given: Mapping[str, Any], weights: Mapping[str, Any] | None = None, around: Around | None = None
    ) -> dict[str, Any]:
        """Every output and next state, of every input and state, all by name. `weights` stand for those of the file.

        `around` makes the call of each node.
        """
        values = dict(self.weights if weights is None else weights)
        values |= {array.value: given[array.name] for array in self.file.inputs}
        # An operator may write a state in place, and the caller keeps its own.
        values |= {value: given[name].clone() for name, (value, _) in self._states.items()}
        if self._control:
            self._control.begin()
        self._run(self._nodes, values, around)
        # Who gets an output may write it, and the state is to stay as it is.
        results = {
            array.name: values[array.value].clone() if array.value in self.file.shared else values[array.value]
            for array in self.file.outputs
        }
        return results | {after.name: values[after.value] for _, after in self._states.values()}

    def _run(
        self, nodes: list[tuple[Pt2Node, Callable[..., Any]]], values: dict[str, Any], around: Around | None
    ) -> None:
        for node, operator in nodes:
            args = [self._resolved(arg, values, around) for arg in node.args]
            kwargs = {name: self._resolved(arg, values, around) for name, arg in node.kwargs.items()}
            call = partial(operator, *args, **kwargs)
            result = around(node, call) if around else call()
            single = len(node.outputs) == 1 and not node.gives_list
            values |= {node.outputs[0]: result} if single else dict(zip(node.outputs, result or (), strict=True))

    def _resolved(self, arg: Any, values: Mapping[str, Any], around: Around | None) -> Any:
        if isinstance(arg, Ref):
            return values[arg.name]
        if isinstance(arg, list):
            return [self._resolved(item, values, around) for item in arg]
        if isinstance(arg, Pt2Graph):
            return partial(self._inner, arg, around)
        if isinstance(arg, Kind):
            name = DTYPES[arg.number]
            return getattr(self._torch, "float64" if self._double and name in FLOATS else name)
        return arg

    def _inner(self, graph: Pt2Graph, around: Around | None, *given: Any) -> tuple[Any, ...]:
        """What a branch, or the condition or body of a loop, gives."""
        values = {name: value for name, value in zip(graph.inputs, given, strict=True) if name}
        self._run(self._inside[id(graph)], values, around)
        return tuple(self._resolved(output, values, around) for output in graph.outputs)
