"""A traced function and the functions that it calls, under names that are made from their content.

TensorFlow numbers functions in the order in which a process makes or loads them. Programs are compared by name, and
XLA's cache of compiled code is searched by name. So functions are renamed: equal programs have equal names.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_PROCESS_ATTRIBUTES = ("_gradient_op_type", "_construction_context")
"""Attributes that differ between processes. An inference reads neither."""


@dataclass(frozen=True)
class Library:
    """FunctionDefs, the first of which is the program, and the SHA-256 of them and of all values that they read."""

    digest: str
    functions: tuple[Any, ...]


def library(function: Any, variables: Iterable[Any]) -> Library:
    """A ConcreteFunction and those that it calls, under canonical names. `variables` has its weights and state."""
    definitions = {
        definition.signature.name: definition for definition in function.graph.as_graph_def().library.function
    }
    first = function._inference_function.definition
    order = {first.signature.name: 0}
    waiting, copies = [first], []
    while waiting:
        copy = type(first)()
        copy.CopyFrom(waiting.pop(0))
        for called in _calls(copy):
            if called.name in definitions and called.name not in order:
                order[called.name] = len(order)
                waiting.append(definitions[called.name])
        _number_arguments(copy)
        copies.append(copy)
    _rename(copies, {name: f"f{index}" for name, index in order.items()})
    digest = hashlib.sha256(b"".join(copy.SerializeToString(deterministic=True) for copy in copies))
    for variable in variables:
        digest.update(np.ascontiguousarray(variable.numpy()).tobytes())
    _rename(copies, {f"f{index}": f"rnn_{digest.hexdigest()[:16]}_{index}" for index in order.values()})
    return Library(digest.hexdigest(), tuple(copies))


def operations(functions: Iterable[Any]) -> dict[str, int]:
    """The number of each operation in these FunctionDefs."""
    return dict(sorted(Counter(node.op for function in functions for node in function.node_def).items()))


def _calls(function: Any) -> Iterator[Any]:
    """The attributes by which a function's nodes call others."""
    for node in function.node_def:
        for _, attribute in sorted(node.attr.items()):
            if attribute.HasField("func"):
                yield attribute.func
            yield from attribute.list.func


def _number_arguments(function: Any) -> None:
    """Name the arguments by position: TensorFlow names those of a loop's condition after the numbered function."""
    names = {argument.name: f"argument_{index}" for index, argument in enumerate(function.signature.input_arg)}
    for argument in function.signature.input_arg:
        argument.name = names[argument.name]
    for node in function.node_def:
        node.input[:] = [names.get(name, name) for name in node.input]
    for name, value in list(function.ret.items()):
        function.ret[name] = names.get(value, value)


def _rename(functions: Sequence[Any], names: dict[str, str]) -> None:
    for function in functions:
        function.signature.name = names[function.signature.name]
        for called in _calls(function):
            called.name = names.get(called.name, called.name)
        for holder in (function, *function.node_def):
            for name in _PROCESS_ATTRIBUTES:
                holder.attr.pop(name, None)
