"""Globals of `ml_program` as arguments and results: the parser's own module is changed in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rnnbench.model_files.errors import ModelFileError
from rnnbench.outside_text import safe_text

GLOBAL = "ml_program.global"
LOADS = ("ml_program.global_load", "ml_program.global_load_const")
STORE = "ml_program.global_store"


def purified(ir: Any, functions: Sequence[Any], globals_: Mapping[str, Any]) -> dict[str, Any]:
    """Make the first function pure. Returns the type of each global that it changes, by its name.

    Its last arguments are these globals before the call, and its last results those after it. A global that no call
    changes becomes a constant. Raises ModelFileError where a global is changed elsewhere than in the function itself.
    """
    entry = functions[0]
    changed = list(dict.fromkeys(_global_of(operation) for operation in _inside(functions) if operation.name == STORE))
    for operation in list(_inside(functions)):
        if operation.name in (*LOADS, STORE) and _global_of(operation) not in globals_:
            raise ModelFileError(f"it uses the global {safe_text(_global_of(operation), 80)}, which is not in it")
        if operation.name in LOADS and _global_of(operation) not in changed:
            _as_constant(ir, operation, globals_[_global_of(operation)])
    types = {name: globals_[name].attributes["type"].value for name in changed}
    if changed:
        _with_states(ir, entry, types)
    for operation in _inside(functions):
        if operation.name in (*LOADS, STORE):
            raise ModelFileError(
                f"the global {safe_text(_global_of(operation), 80)} is used in a loop or a called function; "
                "globals that a call changes are read in the public function itself"
            )
    return types


def _with_states(ir: Any, entry: Any, types: Mapping[str, Any]) -> None:
    block = entry.regions[0].blocks[0]
    location = ir.Location.unknown()
    held = {name: block.add_argument(type_, location) for name, type_ in types.items()}
    *_, returning = [item.operation for item in block.operations]
    for operation in [item.operation for item in block.operations]:
        if operation.name in LOADS:
            _require_type(operation.results[0].type, types[_global_of(operation)])
            operation.results[0].replace_all_uses_with(held[_global_of(operation)])
            operation.erase()
        elif operation.name == STORE:
            _require_type(operation.operands[0].type, types[_global_of(operation)])
            held[_global_of(operation)] = operation.operands[0]
            operation.erase()
    results = [*returning.operands, *held.values()]
    ir.Operation.create("func.return", operands=results, ip=ir.InsertionPoint(returning))
    returning.erase()
    arguments = [argument.type for argument in block.arguments]
    function_type = ir.FunctionType.get(arguments, [result.type for result in results])
    for key in ("arg_attrs", "res_attrs"):
        if key in entry.attributes:
            del entry.attributes[key]
    entry.attributes["function_type"] = ir.TypeAttr.get(function_type)


def _as_constant(ir: Any, load: Any, variable: Any) -> None:
    if "value" not in variable.attributes:
        raise ModelFileError(f"its global {safe_text(_global_of(load), 80)} has no value in the file")
    value = variable.attributes["value"]
    _require_type(load.results[0].type, value.type)
    constant = ir.Operation.create(
        "stablehlo.constant",
        results=[load.results[0].type],
        attributes={"value": value},
        ip=ir.InsertionPoint(load),
    )
    load.results[0].replace_all_uses_with(constant.results[0])
    load.erase()


def _require_type(one: Any, other: Any) -> None:
    if one != other:
        raise ModelFileError(f"a global of the type {safe_text(str(other), 80)} is used as {safe_text(str(one), 80)}")


def _global_of(operation: Any) -> str:
    """Its name. A global of another module inside this one would have a path."""
    reference = operation.attributes["global"].value
    return reference if isinstance(reference, str) else "::".join(reference)


def _inside(functions: Sequence[Any]) -> Iterator[Any]:
    waiting = list(functions)
    while waiting:
        for region in waiting.pop().regions:
            for block in region.blocks:
                operations = [item.operation for item in block.operations]
                waiting += operations
                yield from operations
