"""What a file contains that compilers are known to get wrong, and which of its arrays are wrong then.

A format tells its features (`Feature`), found in operators, attributes and types. With the states that a case names,
they are the file's traits. `expectations.yaml` names them under `contains`; docs/upstream/README.md lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from rnnbench.model_files.description import ArrayDescription, FileDescription

TRAITS = {
    "backward-scan": "ONNX: a Scan that runs backward",
    "bfloat-lists": "ONNX: weights or constants of bfloat16 that have the bits of each number in a list",
    "clipped-rnn": "ONNX: an RNN operator with a clip",
    "concat-quantised-twice": "ONNX: a Concat that is quantised, and then quantised again",
    "convolution-of-an-output": "ONNX and TFLite: a convolution, channels last, of a value that is an output too",
    "default-threshold": "ONNX: an LSTM, GRU or RNN operator with a ThresholdedRelu that has no alpha",
    "fused-gemm": "ONNX: a FusedGemm operator of ONNX Runtime with another activation than Relu and LeakyRelu",
    "joint-gates": "ONNX: an LSTM operator with input_forget",
    "lstm-activation": "TFLite: an LSTM operator without an activation, or in int8 with another than tanh",
    "merged-directions": "TFLite: an LSTM of both directions with one result, of several rows that come before steps",
    "nested-ifs": "ONNX: an If in a branch of an If, which is in a branch of another one",
    "older-operators": "ONNX: a Softmax of version 11 or 12 over several axes, or a reduction of 13 to 17 with axes",
    "one-element-state": "any format: a state of one element whose next value depends on such states alone",
    "slopes-of-one-axis": "ONNX: a PRelu whose slopes are those of the last axis, and as many as axis 1 is long",
    "strided-convolution": "ONNX: a Conv with a stride",
    "eight-bit-products": "ONNX and TFLite: products of quantised arrays by weights of whole numbers beyond 64",
    "two-byte-arrays": "ONNX and TFLite: arrays of 16 bits with a scale",
    "other-activations": "ONNX: an LSTM or GRU operator with another activation than sigmoid, tanh and relu",
    "peepholes": "ONNX: an LSTM operator with peepholes",
    "quantised-concat": "ONNX: a convolution with quantised weights of a quantised Concat",
    "quantised-states": "ONNX and TFLite: states of a file with arrays that are quantised by fixed ranges",
    "quantised-products": "TFLite: a product of another one's result, both quantised, of which one has no bias",
    "ring": "a state whose next value is a part of it with new values behind or before",
    "rnn-directions": "TFLite: an RNN of both directions with whole weights or an auxiliary input, in some orders",
    "rows-first-operator": "ONNX: an LSTM, GRU or RNN operator with layout 1, of which rows come before steps",
    "rows-in-equal-states": "StableHLO: two states of one shape and type, and rows written into an array of these",
    "scatter": "StableHLO: a scatter to rows that are values",
    "unlike-directions": "ONNX: an LSTM, GRU or RNN operator with other activations backward than forward",
    "whole-diagonals": "TFLite: an LSTM operator with diagonal recurrent weights of whole numbers",
}
"""What each trait is, by its name in `expectations.yaml`."""


SEVEN_BITS = 64
"""Weights of at most this size need 16 bits for the sum of two products with unsigned bytes: 2·255·64 < 2¹⁵."""


@dataclass(frozen=True)
class Operation:
    """A node, as names of values: what it takes, those in its inner graphs included, and what it gives."""

    takes: Collection[str]
    gives: Collection[str]


def dependences(
    operations: Iterable[Operation], inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """The inputs that each output depends on. `inputs` and `outputs` have the value of each array, by its name."""
    names = list(inputs)
    bits = {value: 1 << place for place, value in enumerate(inputs.values())}
    for operation in operations:
        needed_bits = 0
        for value in operation.takes:
            needed_bits |= bits.get(value, 0)
        for value in operation.gives:
            bits[value] = bits.get(value, 0) | needed_bits
    needed = {output: bits.get(value, 0) for output, value in outputs.items()}
    return {
        output: tuple(name for place, name in enumerate(names) if output_bits >> place & 1)
        for output, output_bits in needed.items()
    }


def reached(operations: Iterable[Operation], values: Collection[str], outputs: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the outputs that depend on any of these values."""
    reached_values = set(values)
    for operation in operations:
        if not reached_values.isdisjoint(operation.takes):
            reached_values.update(operation.gives)
    return tuple(name for name, value in outputs.items() if value in reached_values)


def sources(value: str, makers: Mapping[str, tuple[str, str]], movers: Collection[str]) -> Iterator[tuple[str, str]]:
    """The value, and those that it is made of by moving data alone, each with the operator that makes it.

    `makers` has the operator of each value that one makes, and its first input.
    """
    for _ in range(len(makers) + 1):
        operator, before = makers.get(value, ("", ""))
        yield value, operator
        if operator not in movers:
            return
        value = before


def traits_of(description: FileDescription, state: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The file's traits, each with the arrays that may be wrong by it: states before a call, and outputs.

    `state` has the next value of each state, as the case says.
    """
    features = {feature.name: feature for feature in description.features}
    states = {array.name: array for array in description.arrays if array.name in state}
    depends = description.depends
    if single := _computed_from_single(states, state, depends):
        yield "one-element-state", _spoiled(single, state, description)
    if state and description.activations == "static":
        yield "quantised-states", _spoiled(state, state, description)
    for name, feature in features.items():
        arrays = set(feature.arrays)
        if name == "rows-in-equal-states":
            arrays = _with_a_twin([states[name] for name in feature.arrays if name in states])
        if name == "ring":
            arrays &= state.keys()
        if arrays or name == "scatter":
            yield name, _spoiled(arrays, state, description)


def _computed_from_single(
    states: Mapping[str, ArrayDescription], state: Mapping[str, str], depends: Mapping[str, Sequence[str]]
) -> set[str]:
    single = {name for name, array in states.items() if array.shape is not None and _is_single(array)}
    return {name for name in single if name in depends.get(state[name], ()) and {*depends[state[name]]} <= single}


def _is_single(array: ArrayDescription) -> bool:
    sizes = array.shape or ()
    return all(isinstance(size, int) for size in sizes) and prod(size for size in sizes if isinstance(size, int)) == 1


def _with_a_twin(arrays: Sequence[ArrayDescription]) -> set[str]:
    """The names of arrays whose shape and type another array has too."""
    kinds = [(array.shape, array.dtype) for array in arrays]
    return {array.name for array, kind in zip(arrays, kinds, strict=True) if kinds.count(kind) > 1}


def _spoiled(arrays: Iterable[str], state: Mapping[str, str], description: FileDescription) -> frozenset[str]:
    """These arrays, the outputs that depend on them, and the states of later calls.

    All, where the format does not tell what depends on what.
    """
    outputs = [array.name for array in description.of_role("output", "state_out")]
    if not description.depends:
        return frozenset((*outputs, *state))
    spoiled, before_pass = set(arrays), set[str]()
    while spoiled != before_pass:
        before_pass = set(spoiled)
        spoiled |= {name for name in outputs if not spoiled.isdisjoint(description.depends.get(name, ()))}
        spoiled |= {before for before, after in state.items() if after in spoiled}
    return frozenset(spoiled)
