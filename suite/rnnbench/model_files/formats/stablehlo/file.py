"""Reading a module of StableHLO within limits: its operations must be on a list, and its globals become arguments.

A state in a global of `ml_program` is an argument and a result of the function here, so that every reader may set and
read it. The functions get names of their own, and lose all attributes.
Source: https://github.com/openxla/stablehlo/blob/main/docs/spec.md, and MLIR's dialect `ml_program`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.entry_point import entry_point
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.model_files.formats.stablehlo.globals import GLOBAL, purified
from rnnbench.model_files.formats.stablehlo.graph import MlirArray, Region, StablehloFile, TensorType
from rnnbench.model_files.formats.stablehlo.operations import READ
from rnnbench.model_files.formats.stablehlo.parsing import parsed, parser, text_of
from rnnbench.model_files.formats.stablehlo.plain import Numbered, plain_array, plain_type
from rnnbench.outside_text import safe_text

INSTEAD: Mapping[str, str] = {
    "stablehlo.get_dimension_size": "lower the function for arrays of fixed sizes",
}
"""What says the same in operations that are read."""
_OTHERS = "write that part of the network in other operations"

Place = tuple[str, ...]
"""A place in a tree of arguments or results."""
MAIN = "main"
_FUNCTION, _CALLS = "func.func", ("func.call", "stablehlo.composite")
_GIVEN_BY_JAX = "jax.global_constant"
"""The attribute of an argument that jax.export adds to those of the function, with its name."""
_LOCATION = re.compile(r'loc\("([^"\n]{1,200})"\)')


def read_stablehlo(path: Path) -> StablehloFile:
    """The module of a `.mlir` file. Raises ModelFileError, and MissingExtraError without a parser."""
    text = text_of(read_bytes(path))
    ir, context = parser()
    with context, ir.Location.unknown(context):
        module = parsed(ir, context, text)
        with parsing("it is no module of StableHLO that is read"):
            return _Reader(ir, module).file()


class _Reader:
    def __init__(self, ir: Any, module: Any) -> None:
        self._ir, self._module = ir, module
        top = [item.operation for item in module.body.operations]
        self._functions = {
            operation.attributes["sym_name"].value: operation for operation in top if operation.name == _FUNCTION
        }
        self._globals = {
            operation.attributes["sym_name"].value: operation for operation in top if operation.name == GLOBAL
        }
        if others := [operation.name for operation in top if operation.name not in (_FUNCTION, GLOBAL)]:
            raise ModelFileError(f"it has {safe_text(others[0], 80)} beside functions and globals, which is not read")

    def file(self) -> StablehloFile:
        main = self._main()
        reached = self._reached(main)
        entry = self._functions[main]
        argument_paths, result_paths = _paths(entry, "arg"), _paths(entry, "result")
        states = purified(self._ir, [self._functions[name] for name in reached], self._globals)
        arrays = self._arrays(entry, argument_paths, result_paths, states)
        called = self._renamed(reached)
        functions = {called[name]: self._region(self._functions[name]) for name in reached}
        if not self._module.operation.verify():
            raise ModelFileError("it has functions that MLIR refuses once its globals are arguments")
        inputs, outputs, before, after = arrays
        return StablehloFile(
            functions=functions,
            entry=called[main],
            inputs=inputs,
            outputs=outputs,
            states=tuple(zip(before, after, strict=True)),
            starts=frozenset(array.name for array, name in zip(before, states, strict=True) if self._has_start(name)),
            text="\n".join(self._functions[name].get_asm(assume_verified=True) for name in reached),
        )

    def _main(self) -> str:
        public = [name for name, function in self._functions.items() if _is_public(function)]
        chosen = entry_point(public, MAIN, lambda name: bool(self._functions[name].regions[0].blocks[0].arguments))
        if chosen is None:
            shown = safe_text(", ".join(public) or "none", 200)
            raise ModelFileError(
                f"its public functions are {shown}; the one that is read is '{MAIN}', or the only one with arguments"
            )
        return chosen

    def _reached(self, main: str) -> list[str]:
        """The functions that a call runs. Raises ModelFileError for what is not read, and for recursion."""
        reached, count = list[str](), 0
        pending: list[tuple[str, tuple[str, ...]]] = [(main, ())]
        while pending:
            name, callers = pending.pop()
            if name in callers:
                raise ModelFileError(f"its function {safe_text(name, 80)} calls itself")
            if len(callers) > limits.CALLS:
                raise ModelFileError(f"its functions call each other more than {limits.CALLS} deep")
            if name in reached:
                continue
            if name not in self._functions or not self._functions[name].regions[0].blocks:
                raise ModelFileError(f"it calls the function {safe_text(name, 80)}, which is not in it")
            reached.append(name)
            for node in _all_operations(self._functions[name]):
                count += 1
                if node.name not in READ:
                    name, instead = safe_text(node.name, 80), INSTEAD.get(node.name, _OTHERS)
                    raise ModelFileError(f"its operation {name} is not among those that are read; {instead}")
                if node.name in _CALLS:
                    pending.append((_called(node), (*callers, name)))
            if count > limits.NODES:
                raise ModelFileError(f"it has more than {limits.NODES:,} operations; that many are not read")
        self._refuse_endless_calls(reached)
        return reached

    def _refuse_endless_calls(self, reached: list[str]) -> None:
        """A function that was reached twice is looked at once, so a circle is found here, and calls without an end."""
        operations = {name: list(_all_operations(self._functions[name])) for name in reached}
        calls = {name: [_called(node) for node in nodes if node.name in _CALLS] for name, nodes in operations.items()}
        sizes = dict[str, int]()
        while leaves := [name for name, called in calls.items() if not calls.keys() & called]:
            for name in leaves:
                sizes[name] = len(operations[name]) + sum(sizes[called] for called in calls.pop(name))
                limits.require_operations(sizes[name])
        if calls:
            raise ModelFileError(f"its function {safe_text(min(calls), 80)} calls itself")

    def _arrays(
        self, entry: Any, argument_paths: list[Place], result_paths: list[Place], states: Mapping[str, Any]
    ) -> tuple[tuple[MlirArray, ...], ...]:
        """Inputs, outputs, and the states before and after a call."""
        type_ = entry.attributes["function_type"].value
        unique = _Unique()
        inputs = [
            unique.array(_called_by(path) or f"arg{index}", plain_type(self._ir, tensor), path)
            for index, (path, tensor) in enumerate(zip(argument_paths, type_.inputs, strict=False))
        ]
        before = [
            unique.array(_called_by(_path(name)) or f"state{index}", plain_type(self._ir, tensor))
            for index, (name, tensor) in enumerate(states.items())
        ]
        outputs = [
            unique.array(_called_by(path) or f"result{index}", plain_type(self._ir, tensor), path)
            for index, (path, tensor) in enumerate(zip(result_paths, type_.results, strict=False))
        ]
        after = [unique.array(f"{array.name}_next", TensorType(array.shape, array.dtype)) for array in before]
        if len(inputs) + len(outputs) + 2 * len(before) > limits.ARRAYS:
            raise ModelFileError(f"it has more than {limits.ARRAYS} inputs, outputs and states; that many are not read")
        return tuple(inputs), tuple(outputs), tuple(before), tuple(after)

    def _renamed(self, reached: list[str]) -> dict[str, str]:
        """Give functions names that no module around them has. Returns the new ones by the old ones."""
        names = {name: f"file_{index}" for index, name in enumerate(reached)}
        for name in reached:
            function = self._functions[name]
            for attribute in ("arg_attrs", "res_attrs", *_attribute_names(function)):
                if attribute not in ("sym_name", "function_type") and attribute in function.attributes:
                    del function.attributes[attribute]
            function.attributes["sym_name"] = self._ir.StringAttr.get(names[name])
            function.attributes["sym_visibility"] = self._ir.StringAttr.get("private")
            for node in _all_operations(function):
                if node.name in _CALLS:
                    key = _callee_key(node)
                    node.attributes[key] = self._ir.FlatSymbolRefAttr.get(names[_called(node)])
        return names

    def _has_start(self, name: str) -> bool:
        """Whether a global has a value that is not zero. Raises ModelFileError if the text does not have it."""
        attributes = self._globals[name].attributes
        if "value" not in attributes:
            return False
        if not isinstance(attributes["value"], self._ir.DenseElementsAttr):
            raise ModelFileError(f"its global {safe_text(name, 80)} has no plain values; print it with its values")
        return bool(np.any(plain_array(self._ir, attributes["value"])))

    def _region(self, function: Any) -> Region:
        return Numbered(self._ir).region(function.regions[0])


class _Unique:
    """Arrays, of which later ones of a name have a number."""

    def __init__(self) -> None:
        self._names = set[str]()

    def array(self, name: str, type_: TensorType, path: tuple[str, ...] = ()) -> MlirArray:
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
        unique = next(numbered for numbered in names if numbered not in self._names)
        self._names.add(unique)
        if math.prod(type_.shape) > limits.ELEMENTS:
            raise ModelFileError(f"{unique} has the shape {list(type_.shape)}; that many elements are not read")
        return MlirArray(unique, type_.shape, type_.dtype, path)


def _paths(function: Any, kind: str) -> list[Place]:
    """The places of arguments or results in their trees, as JAX or MLIR's locations tell; empty where they do not."""
    type_ = function.attributes["function_type"].value
    count = len(type_.inputs if kind == "arg" else type_.results)
    if count > limits.ARRAYS:
        raise ModelFileError(f"it has more than {limits.ARRAYS} inputs or outputs; that many are not read")
    key, name_key = ("arg_attrs", "jax.arg_info") if kind == "arg" else ("res_attrs", "jax.result_info")
    attributes = list(function.attributes[key]) if key in function.attributes else [{}] * count
    names = [str(attribute[name_key].value) if name_key in attribute else "" for attribute in attributes]
    if kind == "arg":
        exported = [
            str(attribute[_GIVEN_BY_JAX].value) if _GIVEN_BY_JAX in attribute else "" for attribute in attributes
        ]
        names = [name or exported_name for name, exported_name in zip(names, exported, strict=True)]
        locations = [
            _LOCATION.fullmatch(str(argument.location)) for argument in function.regions[0].blocks[0].arguments
        ]
        names = [name or (location[1] if location else "") for name, location in zip(names, locations, strict=True)]
    return list(map(_path, names))


def _path(name: str) -> Place:
    """`result[0]['h']` as `result, 0, h`."""
    return tuple(re.findall(r"[A-Za-z0-9_]+", name))


def _called_by(words: Place) -> str:
    """`result, h` as `h`, `state, 0` as `state_0`."""
    if len(words) > 1 and words[0] == "result":
        words = words[1:] if not words[1].isdigit() else words
    return "_".join(words)[: limits.NAME_CHARACTERS // 4]


def _is_public(function: Any) -> bool:
    visible = "sym_visibility" not in function.attributes or function.attributes["sym_visibility"].value == "public"
    return visible and bool(function.regions[0].blocks)


def _attribute_names(operation: Any) -> list[str]:
    return [attribute if isinstance(attribute, str) else attribute.name for attribute in operation.attributes]


def _callee_key(node: Any) -> str:
    return "callee" if node.name == "func.call" else "decomposition"


def _called(node: Any) -> str:
    return str(node.attributes[_callee_key(node)].value)


def _all_operations(operation: Any) -> Iterator[Any]:
    """The operations inside of an operation, at any depth."""
    for region in operation.regions:
        for block in region.blocks:
            for item in block.operations:
                yield item.operation
                yield from _all_operations(item.operation)
