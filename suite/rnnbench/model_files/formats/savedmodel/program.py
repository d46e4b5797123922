"""Calling the graph of a SavedModel, with the variables that it changes as arrays of each call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.formats.savedmodel.file import SavedFile, read_saved_model
from rnnbench.model_files.tensorflow_graph import NARROW, PURPOSE, require_tensorflow
from rnnbench.model_files.tensorflow_program import TensorflowArray, TensorflowState, named_arrays, told
from rnnbench.optional import require


class SavedModelProgram:
    """The graph with its variables. `double`: in float64 wherever the file has floats."""

    def __init__(self, path: Path, *, double: bool = False) -> None:
        """Raises ModelFileError for a file that is not read."""
        self._tf = require_tensorflow()
        self.file: SavedFile = read_saved_model(path)
        self._double = double
        try:
            self._prepare()
        except (MemoryError, ModelFileError):
            raise
        except Exception as error:  # TensorFlow has no base class of its errors
            raise ModelFileError(f"TensorFlow cannot read its graph: {told(error)}") from error

    def _prepare(self) -> None:
        file, tf = self.file, self._tf
        self.inputs, self.outputs = self._ends(file.inputs), self._ends(file.outputs)
        self._graph = _renamed(_in_float64(tf, file.graph, _narrow_types(tf, file)) if self._double else file.graph)
        self._held = {each.tensor: tf.Variable(self._typed(each.value), trainable=False) for each in file.variables}
        changed = [each for each in file.variables if each.is_state]
        variables = [self._held[each.tensor] for each in changed]
        self.states = tuple(
            TensorflowState(array, f"{array.name}_next", variable)
            for array, variable in zip(named_arrays([each.name for each in changed], variables), variables, strict=True)
        )

    @property
    def variables(self) -> list[Any]:
        """Those that a call reads, states included."""
        return list(self._held.values())

    def __call__(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every output and next state, of every input and state, all by name. Traced only: it uses the variables."""
        for state in self.states:
            state.variable.assign(given[state.before.name])
        ends = {
            info.name: given[array.name] for array, info in zip(self.inputs, self.file.inputs.values(), strict=True)
        }
        capture = self._tf.compat.v1.get_default_graph().capture
        ends |= {tensor: capture(variable.handle) for tensor, variable in self._held.items()}
        wanted = [info.name for info in self.file.outputs.values()]
        made = self._tf.graph_util.import_graph_def(self._graph, input_map=ends, return_elements=wanted, name="file")
        outputs = dict(zip((array.name for array in self.outputs), made, strict=True))
        return outputs | {state.after: state.variable.read_value() for state in self.states}

    def _ends(self, infos: Mapping[str, Any]) -> tuple[TensorflowArray, ...]:
        specs = [self._tf.TensorSpec(self._tf.TensorShape(info.tensor_shape), info.dtype) for info in infos.values()]
        if any(spec.shape.rank is None for spec in specs):
            raise ModelFileError("the number of axes of an input or output is not known")
        arrays = named_arrays(infos, specs)
        return tuple(
            TensorflowArray(array.name, array.shape, "float64") if self._double and array.dtype in FLOATS else array
            for array in arrays
        )

    def _typed(self, value: Any) -> Any:
        return value.astype("float64") if self._double and str(value.dtype) in FLOATS else value


def _renamed(graph: Any) -> Any:
    """The graph with names of functions that say what is in it: TensorFlow has one function of a name in a process.

    They do not begin as TensorFlow's own do: its importer into MLIR drops what is called like a signature's wrapper.
    """
    made = type(graph)()
    made.CopyFrom(graph)
    suffix = hashlib.sha256(graph.SerializeToString(deterministic=True)).hexdigest()[:16]
    for function in made.library.function:
        function.signature.name = f"file_{function.signature.name}_{suffix}"
    for node in (*made.node, *(each for function in made.library.function for each in function.node_def)):
        for attribute in node.attr.values():
            if attribute.WhichOneof("value") == "func" and attribute.func.name:
                attribute.func.name = f"file_{attribute.func.name}_{suffix}"
    return made


def _narrow_types(tf: Any, file: SavedFile) -> dict[int, str]:
    """The types of floats that become float64, by number; those in which the file rounds more have a name.

    Its roundings are those of float32, or of float64 where an input or output is one.
    """
    ends = {tf.as_dtype(info.dtype) for info in (*file.inputs.values(), *file.outputs.values())}
    named = [tf.float16, tf.bfloat16, *([tf.float32] if tf.float64 in ends else [])]
    return {tf.float32.as_datatype_enum: "", **{kind.as_datatype_enum: kind.name for kind in named}}


def _in_float64(tf: Any, graph: Any, narrow: Mapping[int, str]) -> Any:
    """The graph with every float as float64: types of operations and of functions' arguments, and constants.

    An operation that gives a narrower type has its name as an attribute.
    """
    made = type(graph)()
    made.CopyFrom(graph)
    double = tf.float64.as_datatype_enum
    for function in made.library.function:
        for argument in (*function.signature.input_arg, *function.signature.output_arg):
            argument.type = double if argument.type in narrow else argument.type
    for node in (*made.node, *(each for function in made.library.function for each in function.node_def)):
        if rounded := [narrow[kind] for kind in _given(node) if narrow.get(kind)]:
            node.attr[NARROW].s = rounded[0].encode()
        for attribute in node.attr.values():
            _doubled(tf, attribute, narrow, double)
    return made


def _given(node: Any) -> list[int]:
    """The types of what an operation gives, by its declaration."""
    declared = require("tensorflow.python.framework.op_def_registry", *PURPOSE).get(node.op)
    outputs = declared.output_arg if declared is not None else ()
    return [node.attr[output.type_attr].type for output in outputs if output.type_attr and not output.number_attr]


def _doubled(tf: Any, attribute: Any, narrow: Mapping[int, str], double: int) -> None:
    kind = attribute.WhichOneof("value")
    if kind == "type" and attribute.type in narrow:
        attribute.type = double
    elif kind == "list":
        types = [double if each in narrow else each for each in attribute.list.type]
        del attribute.list.type[:]
        attribute.list.type.extend(types)
    elif kind == "tensor" and attribute.tensor.dtype in narrow:
        attribute.tensor.CopyFrom(tf.make_tensor_proto(tf.make_ndarray(attribute.tensor).astype("float64")))
