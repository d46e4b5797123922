"""TFLite files that keep their state in variables: the same file with the state as arguments and results.

VAR_HANDLE names a variable, READ_VARIABLE gives its value, ASSIGN_VARIABLE changes it, and the graph of CALL_ONCE gives
it its first value. No caller can read or set a variable, so no stream could be moved from one session to another.

An operator such as UNIDIRECTIONAL_SEQUENCE_LSTM or SVDF has its state in tensors that are marked as variables. It reads
and writes them in place, so each of them is an input and an output at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.called_graph import (
    graphs_inside,
    keep_called,
    signature_entry,
    signature_of,
)
from rnnbench.model_files.formats.tflite.schema import (
    OperatorKinds,
    add_operator,
    fields_of_graphs,
    names_of,
    numbers_of,
    packed,
    require_schema,
    text_of,
    unpacked,
)

OPERATORS = frozenset(("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"))
_ASK = "; export the network with its states as inputs and outputs"
_Key = tuple[bytes, bytes]
"""A variable is known by the name of its container and its own."""
_STATE_NAMES = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {18: "lstm_h", 19: "lstm_c"},
    "LSTM": {18: "lstm_h", 19: "lstm_c", 1: "lstm_h", 4: "lstm_c"},
    "BIDIRECTIONAL_SEQUENCE_LSTM": {35: "forward_h", 36: "forward_c", 37: "backward_h", 38: "backward_c"},
    "RNN": {4: "rnn_h"},
    "UNIDIRECTIONAL_SEQUENCE_RNN": {4: "rnn_h"},
    "BIDIRECTIONAL_SEQUENCE_RNN": {4: "forward_h", 8: "backward_h"},
    "SVDF": {4: "svdf"},
}
"""What the states of an operator's own are called, by their places in its inputs. Converters give them no names."""

_MOVES = frozenset(
    (
        *("DEQUANTIZE", "QUANTIZE", "CAST", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "TRANSPOSE", "BROADCAST_TO", "TILE"),
        "FILL",
    )
)
"""Operators whose result is zero where what they take is zero."""


@dataclass(frozen=True)
class _Start:
    """The first value of a variable: a tensor of the graph of CALL_ONCE."""

    tensor: Any
    is_zero: bool
    """False where it is not known."""


@dataclass(frozen=True)
class Variable:
    """A variable that calls read and change."""

    before: str
    """The input that its value is."""
    after: str
    """The output that its next value is."""
    has_start: bool
    """Whether the file gives it another first value than zeros."""


def with_states(data: bytes, main: int, signature: str) -> tuple[bytes, tuple[Variable, ...]]:
    """The file, its called graph first and alone with the graphs that it calls; and its variables.

    A variable that no call changes is a constant of the file. `main` is the number of the graph that is called, and
    `signature` its name; empty: the file has none. Raises ModelFileError for variables that cannot be followed.
    """
    model = unpacked(data)
    keep_called(model, main)
    named = [definition for definition in model.signatureDefs if text_of(definition.signatureKey) == signature]
    model.signatureDefs = named if signature else [signature_of(model.subgraphs[0])]
    kinds = OperatorKinds(model)
    inner = [(graph, operator) for graph in graphs_inside(model) for operator in graph.operators or ()]
    if any(kinds.of(operator) in OPERATORS or _own_states(graph, operator) for graph, operator in inner):
        raise ModelFileError(
            f"a graph inside its loop or branch has variables, which are not followed{_ASK}, and its weights as "
            "constants (TFLiteConverter.from_concrete_functions makes them so if it is not given the module)"
        )
    variables = _Variables(model, kinds).replaced()
    keep_called(model, 0)
    return packed(model, len(data)), variables


class _Variables:
    """Follows the variables of a model's first graph."""

    def __init__(self, model: Any, kinds: OperatorKinds) -> None:
        self._model, self._kinds = model, kinds
        self._graph = model.subgraphs[0]
        self._handles: dict[int, _Key] = {}
        """The variable of each tensor that is a handle."""
        self._begins: dict[_Key, int] = {}
        """The tensor with the first value of each variable that is read before it is assigned."""
        self._now: dict[_Key, int] = {}
        """The tensor that has the value of each variable, at this operator."""
        self._assigned: set[_Key] = set()
        self._same: dict[int, int] = {}
        """Tensors that are left out, since another one has the same value."""

    def replaced(self) -> tuple[Variable, ...]:
        """Takes the operators of variables out, and adds ends. The model is changed."""
        graph = self._graph
        starts = self._starts()
        graph.operators = [operator for operator in graph.operators or () if self._stays(operator)]
        graph.outputs = self._followed(graph.outputs)
        for output in self._model.signatureDefs[0].outputs or ():
            (output.tensorIndex,) = self._followed([output.tensorIndex])
        for key in self._begins.keys() - self._assigned:
            self._make_constant(key, starts)
        taken = self._taken_names()
        names = {key: _free(text_of(key[1]).strip() or "variable", taken) for key in self._begins}
        kept = [self._add_ends(key, names[key], starts) for key in self._begins if key in self._assigned]
        operator_states = [
            self._add_end(number, _free(name, taken)) for number, name in self._operator_states().items()
        ]
        return (*kept, *operator_states)

    def _operator_states(self) -> dict[int, str]:
        """The tensors of states that operators have of their own, and what each is called."""
        return {
            number: _STATE_NAMES.get(kind, {}).get(place, f"{kind.lower()}_state")
            for operator in self._graph.operators
            for kind in (self._kinds.of(operator),)
            for place, number in _own_states(self._graph, operator).items()
        }

    def _add_end(self, number: int, name: str) -> Variable:
        """A tensor that is a state before a call, and after it."""
        graph, (signature,) = self._graph, self._model.signatureDefs
        graph.tensors[number].name = name.encode()
        graph.inputs, graph.outputs = ([*numbers_of(ends), number] for ends in (graph.inputs, graph.outputs))
        signature.inputs = [*(signature.inputs or ()), signature_entry(name, number)]
        signature.outputs = [*(signature.outputs or ()), signature_entry(f"{name}_next", number)]
        return Variable(name, f"{name}_next", _begins_below_zero(graph.tensors[number]))

    def _stays(self, operator: Any) -> bool:
        """Whether an operator stays. Those of variables go: their values are followed here. Inputs are renumbered."""
        kind = self._kinds.of(operator)
        inputs = [int(number) for number in numbers_of(operator.inputs)]
        if kind not in OPERATORS:
            if self._handles.keys() & set(inputs):
                raise ModelFileError(f"the operator {kind} gets a variable, which is not followed{_ASK}")
            operator.inputs = self._followed(inputs)
        elif kind == "VAR_HANDLE":
            self._handles[int(operator.outputs[0])] = _key_of(operator)
        elif kind == "READ_VARIABLE":
            key, read = self._variable(inputs), int(operator.outputs[0])
            if key not in self._now:
                self._begins[key] = self._now[key] = read
            self._same[read] = self._now[key]
        elif kind == "ASSIGN_VARIABLE":
            key = self._variable(inputs)
            (self._now[key],) = self._followed(inputs[1:2])
            self._assigned.add(key)
        return kind not in OPERATORS

    def _variable(self, inputs: Sequence[int]) -> _Key:
        if not inputs or inputs[0] not in self._handles:
            raise ModelFileError(f"it reads or changes a variable that comes from outside its graph{_ASK}")
        return self._handles[inputs[0]]

    def _followed(self, numbers: Sequence[int] | None) -> list[int]:
        return [self._same.get(int(number), int(number)) for number in numbers_of(numbers)]

    def _starts(self) -> dict[_Key, _Start]:
        """The first values that the graphs of CALL_ONCE assign."""
        starts = dict[_Key, _Start]()
        for operator in self._graph.operators or ():
            if self._kinds.of(operator) == "CALL_ONCE":
                for number in fields_of_graphs(operator).values():
                    starts |= self._assigned_in(self._model.subgraphs[number])
        return starts

    def _assigned_in(self, graph: Any) -> dict[_Key, _Start]:
        """The value that a graph assigns to each variable."""
        handles, values = dict[int, _Key](), dict[_Key, _Start]()
        for operator in graph.operators or ():
            kind = self._kinds.of(operator)
            if kind == "VAR_HANDLE":
                handles[int(operator.outputs[0])] = _key_of(operator)
            elif kind == "ASSIGN_VARIABLE" and int(operator.inputs[0]) in handles:
                handle, value = map(int, operator.inputs[:2])
                values[handles[handle]] = _Start(graph.tensors[value], self._is_zero(graph, value))
        return values

    def _is_zero(self, graph: Any, number: int) -> bool:
        """Whether a value of a graph is made of a constant that is zero."""
        makers = {
            int(operator.outputs[0]): operator
            for operator in graph.operators or ()
            if len(numbers_of(operator.outputs)) == 1
        }
        while not _has_data(self._model, graph.tensors[number]):
            operator = makers.pop(number, None)
            kind = "" if operator is None else self._kinds.of(operator)
            if kind == "ZEROS_LIKE":
                return True
            if operator is None or kind not in _MOVES:
                return False
            number = int(operator.inputs[1 if kind == "FILL" else 0])
        return _is_zero(self._model, graph.tensors[number])

    def _make_constant(self, key: _Key, starts: Mapping[_Key, _Start]) -> None:
        """A variable that no call changes has its first value in the graph."""
        tensor, start = self._graph.tensors[self._begins[key]], starts.get(key)
        if start is None or not _has_data(self._model, start.tensor):
            raise ModelFileError(f"the variable '{text_of(key[1])}' is read, and the file has no value for it")
        if (start.tensor.type, *numbers_of(start.tensor.shape)) != (tensor.type, *numbers_of(tensor.shape)):
            raise ModelFileError(f"the variable '{text_of(key[1])}' has a first value of another shape or type")
        tensor.buffer, tensor.quantization = start.tensor.buffer, start.tensor.quantization

    def _taken_names(self) -> set[str]:
        """Names that no state can have."""
        signature = self._model.signatureDefs[0]
        taken = {text_of(entry.name) for entry in (*(signature.inputs or ()), *(signature.outputs or ()))}
        for number in self._handles:
            self._graph.tensors[number].name = b""  # It has the variable's name, and nothing uses it any more.
        return taken | {text_of(tensor.name) for tensor in self._graph.tensors}

    def _add_ends(self, key: _Key, name: str, starts: Mapping[_Key, _Start]) -> Variable:
        graph, (signature,) = self._graph, self._model.signatureDefs
        before, after = self._begins[key], self._now[key]
        graph.tensors[before].name = name.encode()
        graph.inputs = [*numbers_of(graph.inputs), before]
        signature.inputs = [*(signature.inputs or ()), signature_entry(name, before)]
        if after in self._without_maker() or _has_data(self._model, graph.tensors[after]):
            after = self._copied(after, name)
        graph.outputs = [*dict.fromkeys([*numbers_of(graph.outputs), after])]
        signature.outputs = [*(signature.outputs or ()), signature_entry(f"{name}_next", after)]
        start = starts.get(key)
        has_start = start is not None and not start.is_zero
        return Variable(name, f"{name}_next", has_start)

    def _without_maker(self) -> Collection[int]:
        """Tensors that no operator makes: what is also a graph's input cannot be its output in every runtime."""
        return {*map(int, numbers_of(self._graph.inputs)), *self._begins.values()}

    def _copied(self, number: int, name: str) -> int:
        """A new tensor with the same value: a RESHAPE to the shape that it has."""
        schema, old = require_schema(), self._graph.tensors[number]
        new, shape, buffer = schema.TensorT(), schema.TensorT(), schema.BufferT()
        new.name, new.shape, new.shapeSignature = f"{name}_next".encode(), old.shape, old.shapeSignature
        new.type, new.buffer, new.hasRank, new.quantization = old.type, 0, old.hasRank, old.quantization
        sizes = np.array([*numbers_of(old.shape)], np.int32)
        buffer.data = np.frombuffer(sizes.tobytes(), np.uint8) if sizes.size else None
        self._model.buffers.append(buffer)
        shape.name, shape.shape, shape.type = f"{name}_shape".encode(), [sizes.size], schema.TensorType.INT32
        shape.buffer = len(self._model.buffers) - 1
        self._graph.tensors += [new, shape]
        copy = len(self._graph.tensors) - 2
        self._graph.operators.append(add_operator(self._model, "RESHAPE", [number, copy + 1], copy))
        return copy


def _free(wanted: str, taken: set[str]) -> str:
    """A name that is not taken, nor its next value's; both are from here on."""
    names = chain([wanted], (f"{wanted}_{number}" for number in count(1)))
    name = next(candidate for candidate in names if not {candidate, f"{candidate}_next"} & taken)
    taken |= {name, f"{name}_next"}
    return name


def _own_states(graph: Any, operator: Any) -> dict[int, int]:
    """The tensors that are an operator's own state, by their places in its inputs."""
    inputs = enumerate(map(int, numbers_of(operator.inputs)))
    return {place: number for place, number in inputs if number >= 0 and graph.tensors[number].isVariable}


def _key_of(operator: Any) -> _Key:
    options = operator.builtinOptions
    return (options.container or b"", options.sharedName or b"") if options is not None else (b"", b"")


def _has_data(model: Any, tensor: Any) -> bool:
    return model.buffers[tensor.buffer].data is not None


def _data(model: Any, tensor: Any) -> np.ndarray:
    """The bytes of a constant; none of another tensor, whose value is not known before a call."""
    data = model.buffers[tensor.buffer].data
    return np.zeros(0, np.uint8) if data is None else np.asarray(data)


def _begins_below_zero(tensor: Any) -> bool:
    """Whether LiteRT begins an operator's own state at bytes of 0 which stand for another number.

    Source: tensorflow/lite/core/api/tensor_utils.cc, ResetVariableTensor, which looks at int8 alone.
    """
    quantisation = tensor.quantization
    is_byte = tensor.type == require_schema().TensorType.UINT8
    return is_byte and quantisation is not None and any(numbers_of(quantisation.zeroPoint))


def _is_zero(model: Any, tensor: Any) -> bool:
    """Whether all elements of a constant stand for zero, which is the zero point of a quantised one."""
    data, scales = _data(model, tensor), tensor.quantization
    zeros = numbers_of(scales.zeroPoint) if scales is not None and scales.scale is not None else []
    if len(zeros) != 1 or not data.size:
        return not np.any(data)
    kind = names_of("TensorType")[tensor.type].lower()
    return bool(np.all(np.frombuffer(data.tobytes(), np.dtype(kind)) == int(zeros[0])))
