"""A graph of TensorFlow with all floats in float64, which says of each operation where the file rounds more."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.tensorflow_batch_norm import without_fused
from rnnbench.model_files.tensorflow_graph import NARROW, PURPOSE
from rnnbench.model_files.tensorflow_program import TensorflowArray, TensorflowProgram, TensorflowState, traced
from rnnbench.optional import require


def in_float64(graph: Any, ends: Iterable[Any]) -> Any:
    """A GraphDef with every float as float64: types of operations and of functions' arguments, and constants.

    An operation that gives a narrower type than the arithmetic of the file has its name as an attribute. That is
    float64 where one of `ends`, the types of inputs and outputs, is so, else float32.
    """
    tf = require("tensorflow", *PURPOSE)
    named = [tf.float16, tf.bfloat16, *([tf.float32] if tf.float64 in ends else [])]
    narrow = {tf.float32.as_datatype_enum: "", **{kind.as_datatype_enum: kind.name for kind in named}}
    retyped = type(graph)()
    retyped.CopyFrom(graph)
    without_fused(retyped)
    double = tf.float64.as_datatype_enum
    for function in retyped.library.function:
        for argument in (*function.signature.input_arg, *function.signature.output_arg):
            argument.type = double if argument.type in narrow else argument.type
    for node in (*retyped.node, *(item for function in retyped.library.function for item in function.node_def)):
        _write_defaults(node, narrow)
        if rounded := [narrow[kind] for kind in _output_types(node) if narrow.get(kind)]:
            node.attr[NARROW].s = rounded[0].encode()
        for attribute in node.attr.values():
            _doubled(tf, attribute, narrow, double)
    return retyped


def with_own_names(graph: Any) -> Any:
    """The graph with names of functions that say what is in it: TensorFlow has one function of a name in a process.

    They do not begin as TensorFlow's own do: its importer into MLIR drops what is called like a signature's wrapper.
    """
    renamed = type(graph)()
    renamed.CopyFrom(graph)
    suffix = hashlib.sha256(graph.SerializeToString(deterministic=True)).hexdigest()[:16]
    for function in renamed.library.function:
        function.signature.name = f"file_{function.signature.name}_{suffix}"
    for node in (*renamed.node, *(item for function in renamed.library.function for item in function.node_def)):
        for attribute in node.attr.values():
            if attribute.WhichOneof("value") == "func" and attribute.func.name:
                attribute.func.name = f"file_{attribute.func.name}_{suffix}"
    return renamed


def _write_defaults(node: Any, narrow: Mapping[int, str]) -> None:
    """Types that an operation has where nothing is said, which a SavedModel leaves out: float32 of LeakyRelu."""
    declared = require("tensorflow.python.framework.op_def_registry", *PURPOSE).get(node.op)
    for attribute_def in declared.attr if declared is not None else ():
        if attribute_def.default_value.type in narrow and attribute_def.name not in node.attr:
            node.attr[attribute_def.name].CopyFrom(attribute_def.default_value)


def _output_types(node: Any) -> list[int]:
    """The types of what an operation gives, by its declaration."""
    declared = require("tensorflow.python.framework.op_def_registry", *PURPOSE).get(node.op)
    outputs = declared.output_arg if declared is not None else ()
    # A look at an attribute that is not there would add it.
    named = (output.type_attr for output in outputs if not output.number_attr)
    return [node.attr[name].type for name in named if name in node.attr]


def _doubled(tf: Any, attribute: Any, narrow: Mapping[int, str], double: int) -> None:
    kind = attribute.WhichOneof("value")
    if kind == "type" and attribute.type in narrow:
        attribute.type = double
    elif kind == "list":
        types = [double if kind in narrow else kind for kind in attribute.list.type]
        del attribute.list.type[:]
        attribute.list.type.extend(types)
    elif kind == "tensor" and attribute.tensor.dtype in narrow:
        attribute.tensor.CopyFrom(tf.make_tensor_proto(tf.make_ndarray(attribute.tensor).astype("float64")))


class InFloat64:
    """A program that TensorFlow traces, in float64 wherever it has floats (`TensorflowProgram`)."""

    def __init__(self, program: TensorflowProgram) -> None:
        self._tf = tf = require("tensorflow", *PURPOSE)
        arrays = (*program.inputs, *(state.before for state in program.states))
        function, names = traced(program)
        ends = [tf.as_dtype(array.dtype) for array in (*program.inputs, *program.outputs)]
        self._graph = with_own_names(in_float64(function.graph.as_graph_def(), ends))
        variables = {variable.handle.ref(): variable for variable in program.variables}
        captured = {end.name: variables.get(held.ref(), held) for held, end in function.graph.captures}
        self._held = {name: tf.Variable(_wide(tf, value), trainable=False) for name, value in captured.items()}
        self._plain = {name for name, value in captured.items() if isinstance(value, tf.Tensor)}
        self._ends = {array.name: tensor.name for array, tensor in zip(arrays, function.inputs, strict=False)}
        self._made = dict(zip(names, (tensor.name for tensor in function.outputs), strict=True))
        self.inputs, self.outputs = (tuple(map(_in_double, side)) for side in (program.inputs, program.outputs))
        self.states = tuple(TensorflowState(_in_double(s.before), s.after, s.variable) for s in program.states)

        self.weights = program.weights

    @property
    def variables(self) -> list[Any]:
        return list(self._held.values())

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        capture = self._tf.compat.v1.get_default_graph().capture
        ends = {self._ends[name]: value for name, value in arrays.items()}
        for name, variable in self._held.items():
            ends[name] = variable.read_value() if name in self._plain else capture(variable.handle)
        wanted = list(self._made.values())
        results = self._tf.graph_util.import_graph_def(
            self._graph, input_map=ends, return_elements=wanted, name="double"
        )
        return dict(zip(self._made, results, strict=True))


def _in_double(array: TensorflowArray) -> TensorflowArray:
    return TensorflowArray(array.name, array.shape, "float64" if array.dtype in FLOATS else array.dtype)


def _wide(tf: Any, value: Any) -> Any:
    return tf.cast(value, tf.float64) if value.dtype.is_floating else tf.identity(value)
