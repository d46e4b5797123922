"""What is in a `.keras` file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnbench.model_files.axes import Axes
from rnnbench.model_files.describing import FileFacts, build_description
from rnnbench.model_files.description import ArrayDescription, Dim, FileDescription, Role, StatePair, option
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.flow import OUTERMOST, Flow, Maker, OperatorState, Value
from rnnbench.model_files.formats.keras.layers import CELLS, RECURRENT, kinds_of
from rnnbench.model_files.formats.keras.program import KerasProgram
from rnnbench.model_files.tensorflow_program import TensorflowArray
from rnnbench.outside_text import describe_error

BATCH, STEPS = "batch", "steps"
Tensor = tuple[str, int, int]
"""The layer, which of its calls, and which of its outputs."""
_MODEL = "Functional"
_MOVES = frozenset(
    (
        *("Reshape", "Flatten", "Permute", "RepeatVector", "Concatenate", "Dropout", "Identity"),
        *("GetItem", "Split", "Stack", "Squeeze", "ExpandDims", "Transpose", "Slice", "Cast"),
    )
)
_INSIDE = 1
"""The number of the graph of all values that are neither inputs nor outputs."""
_TIME = 1
"""Keras has the batch first and then the time, in all of its layers."""


def describe(path: Path) -> FileDescription:
    """What is in the file, variables of layers with `stateful=True` as states. Raises ModelFileError."""
    program = KerasProgram(path)
    try:
        return _described(path.name, program)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        reason = describe_error(error)[:200]
        raise ModelFileError(f"its layers are not described as Keras describes them: {reason}") from error


def _described(name: str, program: KerasProgram) -> FileDescription:
    has_time = any(_has_time(array) for array in program.outputs)
    flow, names = _flow(program), [array.name for array in program.inputs]
    facts = FileFacts(
        file=name,
        format="keras",
        producer=program.file.producer,
        operators=kinds_of(program.file.config),
        weight_bytes=program.file.weight_bytes,
        depends={} if program.states else {a.name: _computed_from(flow, a.name, names) for a in program.outputs},
    )
    before = [state.before for state in program.states]
    after = [TensorflowArray(state.after, state.before.shape, state.before.dtype) for state in program.states]
    axes: dict[str, Axes] = {array.name: Axes(None, 0) for array in (*before, *after)}
    ends = (*program.inputs, *program.outputs)
    axes |= {array.name: Axes(_TIME if has_time and _has_time(array) else None, 0) for array in ends}
    return build_description(
        facts,
        [_array(array, "input", axes[array.name]) for array in (*program.inputs, *before)],
        [_array(array, "output", axes[array.name]) for array in (*program.outputs, *after)],
        flow=flow,
        axes=axes,
        known=[StatePair(state.before.name, state.after, "traced") for state in program.states],
        notes=[*_notes(program)],
    )


def _notes(program: KerasProgram) -> Iterator[str]:
    """Inputs of floats that are numbers of rows of an Embedding: the layers before it say no type."""
    floats = {array.name for array in program.inputs if array.dtype in FLOATS}
    layers = program.file.config["config"]["layers"]
    for place, layer in enumerate(layers):
        if layer["class_name"] != "Embedding":
            continue
        nodes = layer.get("inbound_nodes") or [[[layers[place - 1]["config"].get("name", ""), 0, 0]]]
        for name in sorted({tensor[0] for node in nodes for tensor in _tensors(node)} & floats):
            answer = option(f"ranges.{name}=[0, {layer['config'].get('input_dim', 1) - 1}]")
            yield f"{name} is {layer['config'].get('name')}'s number of a row, in floats: say which it takes ({answer})"


def _computed_from(flow: Flow, output: str, inputs: Sequence[str]) -> tuple[str, ...]:
    sources = {*flow.computed_from(Value(OUTERMOST, output))}
    return tuple(name for name in inputs if name in sources)


def _has_time(array: TensorflowArray) -> bool:
    return len(array.shape) >= 3 or (len(array.shape) == 2 and array.shape[_TIME] is None)


def _array(array: TensorflowArray, role: Role, axes: Axes) -> ArrayDescription:
    shape: list[Dim] = list(array.shape)
    for axis, name in zip(axes, (STEPS, BATCH), strict=True):
        if axis is not None and axis < len(shape) and shape[axis] is None:
            shape[axis] = name
    return ArrayDescription(array.name, role, tuple(shape), array.dtype)


def _flow(program: KerasProgram) -> Flow:
    """Recurrent layers that keep no state themselves: what they begin with, and where it goes."""
    model = program.file.config["config"]
    names = {tensor: array.name for tensor, array in zip(_outputs(model), program.outputs, strict=False)}
    names |= {(array.name, 0, 0): array.name for array in program.inputs}

    def value_of(tensor: Tensor) -> Value:
        return Value(OUTERMOST, names[tensor]) if tensor in names else Value(_INSIDE, str(tensor))

    flow = Flow(knows_moves=True)
    _Builder(flow).layers(model, value_of)
    return flow


@dataclass(frozen=True)
class _LayerNode:
    """A layer, as a flow has the nodes that make its values."""

    op_type: str


class _Builder:
    """Adds the layers of a model, and of models in it, to a flow."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def layers(self, model: dict[str, Any], value_of: Callable[[Tensor], Value]) -> None:
        """`value_of` is the value of a tensor of this model."""
        given, kinds = dict[tuple[str, int], list[Tensor]](), dict[str, str]()
        for layer in model["layers"]:
            name = layer["config"].get("name", "")
            kinds[name] = layer["class_name"]
            given |= {(name, place): [*_tensors(node)] for place, node in enumerate(layer.get("inbound_nodes", []))}
        used = {tensor for tensors in (*given.values(), _outputs(model)) for tensor in tensors}
        for tensor in sorted(used, key=str):
            name, place, _ = tensor
            if (name, place) in given and kinds.get(name) != _MODEL:
                self._layer_value(kinds[name], [value_of(source) for source in given[name, place]], value_of(tensor))
        for layer in model["layers"]:
            self._layer(layer, used, value_of)

    def _layer_value(self, kind: str, sources: list[Value], target: Value) -> None:
        self._flow.makers[target] = Maker(_LayerNode(kind), sources)
        if kind in _MOVES:
            for source in sources:
                self._flow.move(source, target)

    def _layer(self, layer: dict[str, Any], used: set[Tensor], value_of: Callable[[Tensor], Value]) -> None:
        kind, name, nodes = layer["class_name"], layer["config"].get("name", ""), layer.get("inbound_nodes", [])
        if kind == _MODEL and nodes:
            for place, node in enumerate(nodes):
                self._model(layer["config"], (name, place), [value_of(tensor) for tensor in _tensors(node)], value_of)
            return
        operator = RECURRENT.get(_inner(layer), "")
        states = [[value_of(tensor) for tensor in _states_of(kind, node)] for node in nodes] if operator else []
        for place, initial in enumerate(states):
            # The first of what it gives is y, or the h of a cell.
            after = [value_of((name, place, 1 + index)) for index in range(len(initial))]
            if initial and kind in CELLS and (name, place, 1) not in used:
                after[0] = value_of((name, place, 0))
            pairs = zip(initial, after, strict=True)
            self._flow.states += [OperatorState(operator, name, *pair) for pair in pairs]
        if not any(states) and kind not in CELLS:
            self._flow.states += [OperatorState(RECURRENT[other], name, None, None) for other in _without_state(layer)]

    def _model(
        self, model: dict[str, Any], call: tuple[str, int], given: list[Value], value_of: Callable[[Tensor], Value]
    ) -> None:
        """One call of a model in a model."""

        def inside(tensor: Tensor) -> Value:
            return Value(_INSIDE, f"{call} {value_of(tensor).name} {tensor}")

        for source, tensor in zip(given, _tensors(model.get("input_layers")), strict=False):
            self._flow.move(source, inside(tensor))
        for index, tensor in enumerate(_outputs(model)):
            self._flow.move(inside(tensor), value_of((*call, index)))
        self.layers(model, inside)


def _outputs(model: dict[str, Any]) -> list[Tensor]:
    """The tensors that a model gives. Of a model in it, calls are counted from 1 there, and from 0 elsewhere."""
    inner = {layer["config"].get("name") for layer in model["layers"] if layer["class_name"] == _MODEL}
    tensors = _tensors(model.get("output_layers", []))
    return [(name, call - (name in inner), index) for name, call, index in tensors]


def _inner(layer: dict[str, Any]) -> str:
    """The class of a layer, or of the one that a Bidirectional has."""
    inner = layer["config"].get("layer", {}) if layer["class_name"] == "Bidirectional" else layer
    return str(inner.get("class_name"))


def _states_of(kind: str, node: dict[str, Any]) -> Iterator[Tensor]:
    """What a call of a recurrent layer or cell begins with: an argument with a name, or the second one."""
    named = node.get("kwargs", {}).get("states" if kind in CELLS else "initial_state")
    arguments = node.get("args", [])
    return _tensors(named if named is not None or len(arguments) < 2 else arguments[1])


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors that a part of the layers' description names, in Keras' order: that of the keys of a dict."""
    if isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and isinstance(value[1], int):
        yield (value[0], value[1], value[2])
    elif isinstance(value, list):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from _tensors(value[key])


def _without_state(value: Any) -> Iterator[str]:
    """The classes of recurrent layers in a layer, itself included, that begin each call anew."""
    if isinstance(value, dict):
        if value.get("class_name") in RECURRENT.keys() - CELLS and not value["config"].get("stateful"):
            yield value["class_name"]
        for item in value.values():
            yield from _without_state(item)
    elif isinstance(value, list):
        for item in value:
            yield from _without_state(item)
