"""Calling the graph of a `.pt2` file: torch's operators, one by one. No code of the file runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.formats.pt2.file import read_pt2
from rnnbench.model_files.formats.pt2.graph import DTYPES, Kind, Pt2File, Pt2Node, Ref
from rnnbench.model_files.formats.pt2.operators import operator_of, require_torch

Around = Callable[[Pt2Node, Callable[[], Any]], Any]


class Pt2Program:
    """The graph with its weights. `double`: in float64 wherever the file has floats."""

    def __init__(self, path: Path, *, double: bool = False) -> None:
        """Raises ModelFileError for a file that is not read, or names an operator that this torch has not."""
        self._torch = require_torch()
        self.file: Pt2File = read_pt2(path)
        self._double = double
        self._operators = [operator_of(node) for node in self.file.nodes]
        self.weights = {name: self.tensor(array, self.file.types[name]) for name, array in self.file.weights.items()}
        self._states = {before.name: (before.value, after) for before, after in self.file.states}

    def tensor(self, array: Any, dtype: str) -> Any:
        """An array as a tensor of its own memory, in the program's type for what the file has in `dtype`."""
        tensor = self._torch.tensor(array)
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
        for node, operator in zip(self.file.nodes, self._operators, strict=True):
            args = [self._resolved(arg, values) for arg in node.args]
            call = partial(operator, *args, **{name: self._resolved(arg, values) for name, arg in node.kwargs.items()})
            result = around(node, call) if around else call()
            single = len(node.outputs) == 1 and not node.gives_list
            values |= {node.outputs[0]: result} if single else dict(zip(node.outputs, result or (), strict=True))
        # Who gets an output may write it, and the state is to stay as it is.
        made = {
            array.name: values[array.value].clone() if array.value in self.file.shared else values[array.value]
            for array in self.file.outputs
        }
        return made | {after.name: values[after.value] for _, after in self._states.values()}

    def _resolved(self, arg: Any, values: Mapping[str, Any]) -> Any:
        if isinstance(arg, Ref):
            return values[arg.name]
        if isinstance(arg, list):
            return [self._resolved(each, values) for each in arg]
        if isinstance(arg, Kind):
            name = DTYPES[arg.number]
            return getattr(self._torch, "float64" if self._double and name in FLOATS else name)
        return arg
