"""A user's ONNX file in the form of the suite's graphs: x and states in, y and the next states out, of fixed shapes.

The file's own nodes stand unchanged between nodes that only lay arrays out as the file has them. Those are a Reshape
where that is enough, and a Transpose where the order of axes differs. Constant inputs become constants of the graph,
and branches that follow from constants and sizes take the place of their Ifs.
Arrays of bfloat16 are float32 outside, with a Cast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared.file_layout import from_file, to_file
from rnnbench.backends.shared.onnx_graphs.known_branches import with_known_branches
from rnnbench.backends.shared.onnx_graphs.support import NEXT
from rnnbench.backends.shared.sessions import STORED_AS
from rnnbench.model_files import FileNetwork, graphs, opset_version, read_onnx_model

_SLICE_OF_INPUTS = 10
"""The first set of ONNX's operators in which Slice takes its ends as inputs, and no more as attributes."""
_WEIGHTS_APART = 4
"""The first version of ONNX's format in which weights are no inputs of the graph. The made graph has them so."""
OWN, LAID = "~file/", "~laid/"
"""Before the names of everything that is the file's own, and of what lies between it and the suite's arrays."""


def file_graph(request: Request, network: FileNetwork) -> Any:
    """An `onnx.ModelProto`. Raises BuildError and ModelFileError."""
    from onnx import helper

    model = read_onnx_model(network)
    chunk, batch = request.strategy.chunk, request.batch
    shapes = network.state_shapes(batch)
    opset = opset_version(model)
    before, after = _Nodes(f"{LAID}in/", opset), _Nodes(f"{LAID}out/", opset)
    types = {"x": network.dtype, **{name: network.state_dtype(name, network.dtype) for name in shapes}}
    given_as = {name: before.cast(name, dtype) if dtype in STORED_AS else name for name, dtype in types.items()}
    inputs = to_file(before, network, given_as.pop("x"), given_as, chunk, batch)
    names = _renamed(model, inputs, ["x", "y", *shapes, *(NEXT + name for name in shapes)])
    y, states = from_file(after, network, names, chunk, batch)
    after.call(after.stored(y, network.dtype), "y")
    for name, state in states.items():
        after.call(after.stored(state, types[name]), NEXT + name)
    given = [_declared("x", network.dtype, (chunk, batch, network.input))]
    results = [_declared("y", network.dtype, (chunk, batch, network.width))]
    for name, shape in shapes.items():
        given.append(_declared(name, types[name], shape))
        results.append(_declared(NEXT + name, types[name], shape))
    constants = _constants(network, batch)
    replaced = {*inputs.values(), *(constant.name for constant in constants)}
    kept = [value for value in model.graph.initializer if value.name not in replaced]
    made = helper.make_graph(
        [*before.nodes, *model.graph.node, *after.nodes],
        "model_file",
        given,
        results,
        [*kept, *constants, *before.initializers, *after.initializers],
    )
    made.sparse_initializer.extend(model.graph.sparse_initializer)
    return _model(made, model)


def _declared(name: str, dtype: str, shape: tuple[int, ...]) -> Any:
    """The value info of an input or output of the suite: bfloat16 is float32 there."""
    from onnx import helper

    return helper.make_tensor_value_info(name, _kind(STORED_AS.get(dtype, dtype)), shape)


def _kind(dtype: str) -> int:
    """The number of a type in onnx.proto."""
    from onnx import TensorProto, helper

    return int(TensorProto.BFLOAT16 if dtype == "bfloat16" else helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _constants(network: FileNetwork, batch: int) -> list[Any]:
    from onnx import numpy_helper

    return [numpy_helper.from_array(value, OWN + name) for name, value in network.constant_arrays(batch).items()]


def _model(graph: Any, file: Any) -> Any:
    from onnx import helper

    made = helper.make_model(
        graph,
        producer_name="rnnbench",
        opset_imports=file.opset_import,
        ir_version=max(file.ir_version, _WEIGHTS_APART),
        functions=file.functions,
    )
    try:
        return with_known_branches(made)
    except Exception as error:
        raise BuildError(f"ONNX's shape inference refuses the file at these sizes: {error}") from error


def _renamed(model: Any, inputs: Mapping[str, str], taken: Sequence[str]) -> Mapping[str, str]:
    """Call the file's inputs as `inputs` says, and put OWN before its other arrays and the names in `taken`.

    Returns the new name of each.
    """
    arrays = [value.name for value in (*model.graph.input, *model.graph.output)]
    names = {name: OWN + name for name in (*taken, *arrays)} | dict(inputs)

    def renamed(values: Any) -> None:
        values[:] = [names.get(name, name) for name in values]

    for graph in graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = names.get(value.name, value.name)
        for tensor in graph.sparse_initializer:
            tensor.values.name = names.get(tensor.values.name, tensor.values.name)
        for node in graph.node:
            renamed(node.input)
            renamed(node.output)
    return names


class _Nodes:
    """Nodes over names of values: `ArrayOps` of an ONNX graph."""

    def __init__(self, prefix: str, opset: int) -> None:
        self._prefix, self._opset = prefix, opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def reshaped(self, value: str, shape: Sequence[int]) -> str:
        return self._node("Reshape", [value, self._integers(shape)])

    def transposed(self, value: str, order: Sequence[int]) -> str:
        return self._node("Transpose", [value], perm=list(order))

    def columns(self, value: str, first: int, end: int) -> str:
        if self._opset < _SLICE_OF_INPUTS:
            return self._node("Slice", [value], starts=[first], ends=[end], axes=[2])
        return self._node("Slice", [value, *map(self._integers, ((first,), (end,), (2,)))])

    def cast(self, value: str, dtype: str) -> str:
        return self._node("Cast", [value], to=_kind(dtype))

    def stored(self, value: str, dtype: str) -> str:
        """A value of a type, in the type of the suite's arrays."""
        return self.cast(value, STORED_AS[dtype]) if dtype in STORED_AS else value

    def joined(self, values: Sequence[str]) -> str:
        return self._node("Concat", list(values), axis=2)

    def call(self, value: str, name: str) -> None:
        """Give the result of a node of these, which no other reads, a name of its own."""
        (node,) = (node for node in self.nodes if value in node.output)
        node.output[:] = [name]

    def _node(self, kind: str, values: list[str], **attributes: Any) -> str:
        from onnx import helper

        name = f"{self._prefix}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, values, [name], name=name, **attributes))
        return name

    def _integers(self, values: Sequence[int]) -> str:
        from onnx import numpy_helper

        name = f"{self._prefix}integers/{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name
