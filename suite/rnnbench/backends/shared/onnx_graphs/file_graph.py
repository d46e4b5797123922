"""A user's ONNX file in the form of the suite's graphs: x and states in, y and the next states out, of fixed shapes.

The file's own nodes stand unchanged between nodes that only lay arrays out as the file has them: a Reshape where that
is enough, a Transpose where the order of axes differs. Constant inputs become constants of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared.onnx_graphs.support import NEXT
from rnnbench.model_files import FileArray, FileNetwork, ModelFileError, graphs, read_whole

OWN, LAID = "~file/", "~laid/"
"""Before the names of everything that is the file's own, and of what lies between it and the suite's arrays. They stand
last in the order of names: where OpenVINO joins tensors, the joint one is called by its first name."""


def file_graph(request: Request, network: FileNetwork) -> Any:
    """An `onnx.ModelProto`. Raises BuildError."""
    from onnx import helper, shape_inference

    try:
        model = read_whole(network)
    except ModelFileError as error:
        raise BuildError(str(error)) from error
    _rename(model, network)
    graph, chunk, batch = model.graph, request.strategy.chunk, request.batch
    e = _Layouts(chunk, batch)
    states = network.state_shapes(batch)
    inputs = [e.value("x", (chunk, batch, network.input)), *(e.value(name, shape) for name, shape in states.items())]
    e.feed("x", network.inputs)
    for state in network.states:
        e.feed_one(state.before.name, state.before)
    e.constants(network)
    outputs = [e.value("y", (chunk, batch, network.width))]
    e.gather("y", network.results)
    for state in network.states:
        name = state.before.name
        outputs.append(e.value(NEXT + name, states[name]))
        e.gather_one(NEXT + name, state.after, states[name])
    given = {OWN + array.name for array in network.inputs} | {OWN + one.before.name for one in network.states}
    given |= {OWN + name for name, _, _ in network.constants}
    kept = [value for value in graph.initializer if value.name not in given]
    whole = helper.make_graph(
        [*e.before, *graph.node, *e.after], "model_file", inputs, outputs, [*kept, *e.initializers]
    )
    whole.sparse_initializer.extend(graph.sparse_initializer)
    made = helper.make_model(
        whole,
        producer_name="rnnbench",
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
        functions=model.functions,
    )
    try:
        return shape_inference.infer_shapes(made, data_prop=True)
    except Exception as error:
        raise BuildError(f"ONNX's shape inference refuses the file at these sizes: {error}") from error


def _rename(model: Any, network: FileNetwork) -> None:
    """Put OWN before the names of the file's inputs and outputs, and of values that are called as the suite's are."""
    states = [state.before.name for state in network.states]
    arrays = [value.name for value in (*model.graph.input, *model.graph.output)]
    names = {name: OWN + name for name in ("x", "y", *states, *(NEXT + name for name in states), *arrays)}

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


class _Layouts:
    """The nodes around a file's own."""

    def __init__(self, chunk: int, batch: int) -> None:
        from onnx import helper

        self._helper = helper
        self._sizes = chunk, batch
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.initializers: list[Any] = []

    def value(self, name: str, shape: Sequence[int]) -> Any:
        return self._helper.make_tensor_value_info(name, 1, list(shape))

    def feed(self, name: str, arrays: Sequence[FileArray]) -> None:
        """Give each input of the file its columns of `name` [chunk, batch, sum of sizes]."""
        for array, part in zip(arrays, self._columns(name, arrays), strict=True):
            self.feed_one(part, array)

    def feed_one(self, name: str, array: FileArray) -> None:
        split, order, native = array.layout(*self._sizes)
        cut = self._reshaped(self.before, name, split, f"{LAID}{array.name}/cut")
        turned = self._turned(self.before, cut, split, order, f"{LAID}{array.name}/turned")
        if array.dtype == "float32":
            self._reshaped(self.before, turned, native, OWN + array.name)
            return
        laid = self._reshaped(self.before, turned, native, f"{LAID}{array.name}/laid")
        kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype))
        self.before.append(self._helper.make_node("Cast", [laid], [OWN + array.name], to=kind, name=f"{laid}/cast"))

    def constants(self, network: FileNetwork) -> None:
        from onnx import numpy_helper

        for name, value, dtype in network.constants:
            self.initializers.append(numpy_helper.from_array(np.array(value, dtype), OWN + name))

    def gather(self, name: str, arrays: Sequence[FileArray]) -> None:
        """`name` [chunk, batch, sum of sizes] of the outputs of the file."""
        chunk, batch = self._sizes
        shapes = [(chunk, batch, array.size) for array in arrays]
        if len(arrays) == 1:
            self.gather_one(name, arrays[0], shapes[0])
            return
        parts = [f"{LAID}{name}/{array.name}" for array in arrays]
        for part, array, shape in zip(parts, arrays, shapes, strict=True):
            self.gather_one(part, array, shape)
        self.after.append(self._helper.make_node("Concat", parts, [name], axis=2, name=f"{name}/joined"))

    def gather_one(self, name: str, array: FileArray, shape: Sequence[int]) -> None:
        _, order, native = array.layout(*self._sizes)
        seen = self._reshaped(self.after, OWN + array.name, native, f"{LAID}{name}/seen")
        back = tuple(int(axis) for axis in np.argsort(order))
        turned = self._turned(self.after, seen, native, back, f"{LAID}{name}/turned")
        self._reshaped(self.after, turned, shape, name)

    def _columns(self, name: str, arrays: Sequence[FileArray]) -> Iterator[str]:
        if len(arrays) == 1:
            yield name
            return
        first = 0
        for array in arrays:
            ends = [self._integers((first,)), self._integers((first + array.size,)), self._integers((2,))]
            part = f"{LAID}{name}/{array.name}"
            self.before.append(self._helper.make_node("Slice", [name, *ends], [part], name=part))
            first += array.size
            yield part

    def _turned(self, nodes: list[Any], name: str, shape: Sequence[int], order: tuple[int, ...], result: str) -> str:
        """Transposed; nothing where no axis of more than one element changes its place."""
        if [axis for axis in order if shape[axis] > 1] == [axis for axis in range(len(shape)) if shape[axis] > 1]:
            return name
        nodes.append(self._helper.make_node("Transpose", [name], [result], perm=list(order), name=result))
        return result

    def _reshaped(self, nodes: list[Any], name: str, shape: Sequence[int], result: str) -> str:
        nodes.append(self._helper.make_node("Reshape", [name, self._integers(shape)], [result], name=f"to {result}"))
        return result

    def _integers(self, values: Sequence[int]) -> str:
        from onnx import numpy_helper

        name = f"{LAID}integers/{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name
