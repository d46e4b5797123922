"""Reading a SavedModel within limits, without loading it: one signature's graph, and its variables from the checkpoint.

`tf.saved_model.load` is not used. It makes the tables and runs the initialisers that a model names, and a graph may
hold operations that read and write files or call Python. Here the graph is data, with operations of a list.
Source: tensorflow/core/protobuf/{saved_model,saved_object_graph,trackable_object_graph}.proto.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.entry_point import entry_point
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.model_files.tensorflow_graph import ASSIGNMENTS, PURPOSE, READ
from rnnbench.optional import require
from rnnbench.outside_text import safe_text

_TRANSFORM = "export the network between the Fourier transforms, which takes and gives spectra as real numbers"
INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("PrintV2", "StringFormat"), "save the network without tf.print"),
    "StatelessRandom": "build the network without dropout in its recurrent layers, give it these weights, and save it",
    "RFFT": _TRANSFORM,
    "IRFFT": _TRANSFORM,
    "LookupTable": "write the table's values as a tensor, and read them with tf.gather",
}
"""What says the same in operations that are read, by the beginning of an operation's name."""

_OTHERS = "write that part in other operations, or export the network to ONNX (tf2onnx)"
VARIABLES = "variables"
MAIN = "serving_default"
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_DAMAGED = "the file is damaged; save the model again"


@dataclass(frozen=True)
class SavedVariable:
    """A variable or a constant that the signature uses."""

    tensor: str
    """Its handle in the graph; of a constant, its values."""
    name: str
    value: np.ndarray
    is_state: bool
    """Whether a call changes it."""
    is_constant: bool = False
    """Whether it is a tensor that was made before the function: `w = tf.constant(…)`."""


@dataclass(frozen=True)
class SavedFile:
    """A SavedModel: the graph of its signature, its arrays, and its variables."""

    graph: Any
    """The GraphDef: the call of the signature's function and all functions that it needs."""
    inputs: Mapping[str, Any]
    """The TensorInfo of each input of the signature by its name."""
    outputs: Mapping[str, Any]
    variables: tuple[SavedVariable, ...]
    operators: Counter[str]
    external: tuple[str, ...]
    producer: str


def read_saved_model(path: Path) -> SavedFile:
    """The model of `saved_model.pb`. Raises ModelFileError, and MissingExtraError without TensorFlow."""
    data = read_bytes(path)
    messages = require("tensorflow.core.protobuf.saved_model_pb2", *PURPOSE)
    with parsing("it is no SavedModel, or it is damaged"):
        return _Reader(path, messages.SavedModel.FromString(data)).file()


class _Reader:
    def __init__(self, path: Path, model: Any) -> None:
        if len(model.meta_graphs) != 1 or not model.meta_graphs[0].object_graph_def.nodes:
            raise ModelFileError(
                "it is no SavedModel of TensorFlow 2: it has no single graph with its objects. Load a graph of "
                "TensorFlow 1, and save it again with tf.saved_model.save, or convert it to ONNX"
            )
        (self._meta,) = model.meta_graphs
        self._path = path
        self._functions = {function.signature.name: function for function in self._meta.graph_def.library.function}
        self._nodes = {node.name: node for node in self._meta.graph_def.node}
        self._changed: dict[str, frozenset[int]] = {}
        self._sizes: dict[str, int] = {}

    def file(self) -> SavedFile:
        external, signature = self._external(), self._signature()
        call, called = self._call(signature)
        self._operations(called)
        reached = self._sizes
        graph = type(self._meta.graph_def)()
        graph.versions.CopyFrom(self._meta.graph_def.versions)
        graph.node.add().CopyFrom(call)
        graph.library.function.extend(self._functions[name] for name in reached)
        operators = Counter(node.op for name in reached for node in self._functions[name].node_def)
        return SavedFile(
            graph=graph,
            inputs=_in_order(signature.inputs, [name.partition(":")[0] for name in call.input]),
            outputs=_in_order(signature.outputs, [call.name]),
            variables=tuple(self._variables(call, called, {info.name for info in signature.inputs.values()})),
            operators=operators,
            external=external,
            producer=f"tensorflow {safe_text(self._meta.meta_info_def.tensorflow_version, 60)}",
        )

    def _signature(self) -> Any:
        signatures = self._meta.signature_def
        names = sorted(name for name in signatures if not name.startswith("__"))
        chosen = entry_point(names, MAIN, lambda name: bool(signatures[name].inputs))
        if chosen is None:
            shown = safe_text(", ".join(names) or "none", 200)
            raise ModelFileError(
                f"it has the signatures {shown}; one that is called {MAIN} is read, or the only one with inputs. Save "
                "the network again with the one to run: tf.saved_model.save(MODULE, FOLDER, signatures=FUNCTION)"
            )
        signature = signatures[chosen]
        if not signature.inputs or not signature.outputs:
            raise ModelFileError("its signature has no inputs or no outputs")
        return signature

    def _call(self, signature: Any) -> tuple[Any, str]:
        """The node that gives all outputs of the signature, and the function that it calls."""
        makers = {info.name.partition(":")[0] for info in signature.outputs.values()}
        node = self._nodes.get(min(makers)) if len(makers) == 1 else None
        if node is None or node.op not in ("StatefulPartitionedCall", "PartitionedCall"):
            raise ModelFileError("its signature is no call of one function, as TensorFlow 2 saves it")
        name = node.attr["f"].func.name
        self._require_arguments(node, name)
        results = len(self._functions[name].signature.output_arg)
        for key, info in signature.outputs.items():
            number = info.name.partition(":")[2] or "0"
            if not number.isdigit() or int(number) >= results:
                raise ModelFileError(
                    f"its output {safe_text(key, 80)} is result {safe_text(number, 20)} of the function "
                    f"{safe_text(name, 80)}, which gives {results}; {_DAMAGED}"
                )
        return node, name

    def _require_arguments(self, node: Any, function: str) -> None:
        """Raises ModelFileError unless the node gives a function that is there what it takes."""
        if function not in self._functions:
            raise ModelFileError(f"it calls the function {safe_text(function, 80)}, which is not in it")
        given = sum(not name.startswith("^") for name in node.input) - _before_arguments(node)
        takes = len(self._functions[function].signature.input_arg)
        if given != takes:
            raise ModelFileError(
                f"its operation {safe_text(node.name, 80)} gives {given} arguments to the function "
                f"{safe_text(function, 80)}, which takes {takes}; {_DAMAGED}"
            )

    def _operations(self, function: str, depth: int = 0) -> int:
        """How many operations a call runs. Raises ModelFileError for one that is not on the list."""
        if function in self._sizes:
            return self._sizes[function]
        if depth > limits.CALLS:
            raise ModelFileError(f"its functions call each other more than {limits.CALLS} deep")
        count = 0
        for node in self._functions[function].node_def:
            if node.op not in READ:
                name = safe_text(node.op, 80)
                instead = next((what for begin, what in INSTEAD.items() if node.op.startswith(begin)), _OTHERS)
                raise ModelFileError(f"its operation {name} is not among those that are read; {instead}")
            count += 1
            for inner in _called(node):
                self._require_arguments(node, inner)
                count += self._operations(inner, depth + 1)
        limits.require_operations(count)
        self._sizes[function] = count
        return count

    def _variables(self, call: Any, called: str, inputs: set[str]) -> Iterator[SavedVariable]:
        bound = list(self._meta.object_graph_def.concrete_functions[called].bound_inputs)
        arguments = [name for name in call.input if not name.startswith("^")]
        handles = [index for index, name in enumerate(arguments) if f"{name}:0" not in inputs and name not in inputs]
        if len(bound) != len(handles):
            raise ModelFileError("its signature's function has inputs that are neither the signature's nor variables")
        changed, stored = self._assigned(called), _Checkpoint(self._path.parent / VARIABLES / VARIABLES)
        keys = stored.keys_of(self._meta.object_graph_def)
        for index, number in zip(handles, bound, strict=True):
            saved = _object(self._meta.object_graph_def.nodes, number, "its signature's function")
            tensor = arguments[index] if ":" in arguments[index] else f"{arguments[index]}:0"
            if saved.WhichOneof("kind") == "constant":
                value = self._constant(saved.constant.operation)
                yield SavedVariable(tensor, arguments[index], value, is_state=False, is_constant=True)
                continue
            if saved.WhichOneof("kind") != "variable" or number not in keys:
                raise ModelFileError(
                    "its signature needs a table or an asset beside it; variables and constants are read"
                )
            value = stored.value(keys[number])
            yield SavedVariable(tensor, saved.variable.name, value, is_state=index in changed)

    def _constant(self, name: str) -> np.ndarray:
        """Raises ModelFileError for what is no constant of the graph, or has more elements than bytes."""
        node = self._nodes.get(name)
        if node is None or node.op != "Const" or "value" not in node.attr:
            raise ModelFileError(f"its constant {safe_text(name, 80)} is not in its graph")
        tensor = node.attr["value"].tensor
        elements = math.prod(dim.size for dim in tensor.tensor_shape.dim)
        if not 0 <= elements <= limits.ELEMENTS:
            raise ModelFileError(
                f"its constant {safe_text(name, 80)} has {elements:,} elements; that many are not read"
            )
        return np.asarray(require("tensorflow", *PURPOSE).make_ndarray(tensor))

    def _assigned(self, name: str) -> frozenset[int]:
        """Which arguments of a function are variables that it changes."""
        if name in self._changed:
            return self._changed[name]
        function = self._functions[name]
        places = {argument.name: index for index, argument in enumerate(function.signature.input_arg)}
        assigned = set[int]()
        for node in function.node_def:
            inputs = [places.get(name) for name in node.input if not name.startswith("^")]
            if node.op in ASSIGNMENTS:
                assigned.update(place for place in inputs[:1] if place is not None)
            offset = _before_arguments(node)
            for inner in _called(node):
                held = (inputs[index + offset] for index in self._assigned(inner))
                assigned.update(place for place in held if place is not None)
        self._changed[name] = frozenset(assigned)
        return self._changed[name]

    def _external(self) -> tuple[str, ...]:
        """The files of the checkpoint, which must be plain files."""
        folder = self._path.parent / VARIABLES
        names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
        if linked := next((file for file in (folder, *(folder / name for name in names)) if file.is_symlink()), None):
            raise ModelFileError(f"{safe_text(str(linked.relative_to(folder.parent)), 80)} {limits.NO_LINKS}")
        if not names or len(names) > limits.ARRAYS:
            raise ModelFileError(f"the folder {VARIABLES} beside it is missing; it holds the values of its variables")
        for name in names:
            if not (folder / name).is_file() or not name.startswith(f"{VARIABLES}."):
                raise ModelFileError(f"{VARIABLES}/{safe_text(name, 80)} is no plain file of a checkpoint")
        if (size := sum((folder / name).stat().st_size for name in names)) > limits.WEIGHT_BYTES:
            raise ModelFileError(
                f"its checkpoint has {size:,} bytes; up to {limits.WEIGHT_BYTES >> 30} GiB of weights are read"
            )
        return tuple(f"{VARIABLES}/{name}" for name in names)


def _in_order(ends: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, Any]:
    """The inputs or outputs of a signature as the function has them. A map of protobuf has another order in each
    process."""

    def place(item: tuple[str, Any]) -> tuple[int, int, str]:
        node, _, number = item[1].name.partition(":")
        return nodes.index(node) if node in nodes else len(nodes), int(number) if number.isdigit() else 0, item[0]

    return dict(sorted(ends.items(), key=place))


class _Checkpoint:
    """Values of variables, and their keys by the objects that have them."""

    def __init__(self, prefix: Path) -> None:
        self._bytes = sum(file.stat().st_size for file in prefix.parent.iterdir())
        load = require("tensorflow", *PURPOSE).train.load_checkpoint
        self._reader = _stored("its variables", lambda: load(str(prefix)))
        self._shapes = self._reader.get_variable_to_shape_map()
        self._types = self._reader.get_variable_to_dtype_map()

    def keys_of(self, objects: Any) -> dict[int, str]:
        """The key of each variable by its number in the model: both graphs of objects have the same names of edges."""
        graphs = require("tensorflow.core.protobuf.trackable_object_graph_pb2", *PURPOSE)
        stored = graphs.TrackableObjectGraph.FromString(self._tensor(_OBJECTS)).nodes
        keys: dict[int, str] = {}
        waiting, seen = [(0, 0)], set[int]()
        while waiting:
            number, stored_number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            stored_object = _object(stored, stored_number, "its checkpoint")
            for attribute in stored_object.attributes:
                if attribute.name == "VARIABLE_VALUE":
                    keys[number] = attribute.checkpoint_key
            stored_children = {child.local_name: child.node_id for child in stored_object.children}
            children = _object(objects.nodes, number, "its graph of objects").children
            waiting += [
                (child.node_id, stored_children[child.local_name])
                for child in children
                if child.local_name in stored_children
            ]
        return keys

    def value(self, key: str) -> np.ndarray:
        shape = self._shapes.get(key)
        if shape is None or math.prod(shape) * self._types[key].size > self._bytes:
            raise ModelFileError(f"its checkpoint has no value {safe_text(key, 80)} of the shape that it names")
        return np.asarray(self._tensor(key))

    def _tensor(self, key: str) -> Any:
        return _stored(f"'{safe_text(key, 80)}'", lambda: self._reader.get_tensor(key))


def _stored(what: str, read: Callable[[], Any]) -> Any:
    """What `read` gives of the checkpoint. TensorFlow raises errors of many classes for its bytes."""
    try:
        return read()
    except MemoryError:
        raise
    except Exception as error:
        reason = f"{what} cannot be read from the files of {VARIABLES}/: they are damaged, or of another model"
        raise ModelFileError(f"{reason}; save the model again") from error


def _called(node: Any) -> list[str]:
    return [value.func.name for value in node.attr.values() if value.WhichOneof("value") == "func" and value.func.name]


def _before_arguments(node: Any) -> int:
    """How many inputs a call has before the arguments of what it calls."""
    return 1 if node.op in ("If", "StatelessIf") else 0


def _object(objects: Any, number: int, of: str) -> Any:
    """One object of a graph of objects, which name each other by numbers. Raises ModelFileError."""
    if not 0 <= number < len(objects):
        raise ModelFileError(
            f"{safe_text(of, 80)} names the object {number}, and there are {len(objects)} objects; {_DAMAGED}"
        )
    return objects[number]
