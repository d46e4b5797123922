"""What is in a `.keras` file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rnnbench.model_files.axes import Axes
from rnnbench.model_files.described import FileFacts, described
from rnnbench.model_files.description import ArrayDescription, Dim, FileDescription, Role, StatePair
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.flow import Carried, Flow, Value
from rnnbench.model_files.formats.keras.layers import RECURRENT, kinds_of
from rnnbench.model_files.formats.keras.program import KerasProgram
from rnnbench.model_files.tensorflow_program import TensorflowArray
from rnnbench.outside_text import describe_error

BATCH, STEPS = "batch", "steps"
Tensor = tuple[str, int, int]
"""The layer, which of its calls, and which of its outputs."""
_MOVES = frozenset(("Reshape", "Flatten", "Permute", "RepeatVector", "Concatenate", "Dropout", "Identity"))
_TIME = 1
"""Keras has the batch first and then the time, in all of its layers."""


def describe(path: Path) -> FileDescription:
    """What is in the file, variables of layers with `stateful=True` as states. Raises ModelFileError."""
    program = KerasProgram(path)
    try:
        return _described(path.name, program)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        told = describe_error(error)[:200]
        raise ModelFileError(f"its layers are not described as Keras describes them: {told}") from error


def _described(name: str, program: KerasProgram) -> FileDescription:
    has_time = any(_has_time(array) for array in program.outputs)
    facts = FileFacts(
        file=name,
        format="keras",
        producer=program.file.producer,
        operators=kinds_of(program.file.config),
        weight_bytes=program.file.weight_bytes,
    )
    before = [state.before for state in program.states]
    after = [TensorflowArray(state.after, state.before.shape, state.before.dtype) for state in program.states]
    axes: dict[str, Axes] = {array.name: (None, 0) for array in (*before, *after)}
    axes |= {a.name: (_TIME if has_time and _has_time(a) else None, 0) for a in (*program.inputs, *program.outputs)}
    return described(
        facts,
        [_array(array, "input", axes[array.name]) for array in (*program.inputs, *before)],
        [_array(array, "output", axes[array.name]) for array in (*program.outputs, *after)],
        flow=_flow(program),
        axes=axes,
        known=[StatePair(state.before.name, state.after, "traced") for state in program.states],
    )


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
    made = [tuple(each) for each in _tensors(model.get("output_layers", []))]
    names = {tensor: array.name for tensor, array in zip(made, program.outputs, strict=False)}
    names |= {(array.name, 0, 0): array.name for array in program.inputs}
    flow = Flow()
    for layer in model["layers"]:
        _add(flow, layer, lambda tensor: (0, names[tensor]) if tensor in names else (1, str(tensor)))
    return flow


def _add(flow: Flow, layer: dict[str, Any], value_of: Callable[[Tensor], Value]) -> None:
    kind, name, nodes = layer["class_name"], layer["config"].get("name", ""), layer.get("inbound_nodes", [])
    for number, node in enumerate(nodes):
        given = [value_of(tensor) for tensor in _tensors(node)]
        if kind in _MOVES:
            for source in given:
                flow.before[value_of((name, number, 0))].append(source)
                flow.after[source].append(value_of((name, number, 0)))
        initial = [value_of(tensor) for tensor in _tensors(node.get("kwargs", {}).get("initial_state"))]
        if kind in RECURRENT and initial:
            after = [value_of((name, number, 1 + index)) for index in range(len(initial))]
            flow.carried += [Carried(RECURRENT[kind], name, *pair) for pair in zip(initial, after, strict=True)]
            return
    flow.carried += [Carried(RECURRENT[each], name, None, None) for each in _without_state(layer)]


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors that a part of the layers' description names, in Keras' order: that of the keys of a dict."""
    if isinstance(value, list) and len(value) == 3 and isinstance(value[0], str):
        yield (value[0], value[1], value[2])
    elif isinstance(value, list):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from _tensors(value[key])


def _without_state(value: Any) -> Iterator[str]:
    """The classes of recurrent layers in a layer, itself included, that begin each call anew."""
    if isinstance(value, dict):
        if value.get("class_name") in RECURRENT and not value["config"].get("stateful"):
            yield value["class_name"]
        for each in value.values():
            yield from _without_state(each)
    elif isinstance(value, list):
        for each in value:
            yield from _without_state(each)
