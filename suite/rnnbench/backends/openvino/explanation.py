"""OpenVINO's model before its plugin compiled it, and the nodes that the plugin runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openvino as ov

from rnnbench.backends.base import Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, counted
from rnnbench.backends.openvino.compile import bodies_of, source_model
from rnnbench.backends.openvino.device import config


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    _, model = source_model(request)
    state = ""
    if request.strategy.state == "stateful":
        state = "In variables of the inference request; a reset sets them to zeros."
    elif request.strategy.state == "stitched":
        state = "In two sets of buffers, which two inference requests read and write in turn; a reset writes zeros."
    return Explanation((_ends(model),), state, _stages(model, request))


def _ends(model: Any) -> str:
    inputs, outputs = (
        ", ".join(f"{port.get_any_name()} {port.get_element_type()} {port.get_partial_shape()}" for port in ports)
        for ports in (model.inputs, model.outputs)
    )
    return f"infer({inputs}) -> {outputs}"


def _stages(model: Any, request: Request) -> Iterator[IrStage | Unreadable]:
    listed = list(_lines(model, ""))
    yield IrStage(
        "given",
        "The model that the plugin is given: its operations, with what each reads. The body of a loop is indented.",
        "".join(f"{line}\n" for line, _ in listed),
        counted(kind for _, kind in listed),
    )
    nodes = ov.Core().compile_model(model, "CPU", config(request)).get_runtime_model().get_ordered_ops()
    executed = [_executed(node) for node in nodes]
    yield IrStage(
        "executed",
        "The nodes that the plugin runs, each with its kernel and what it was made from. It shows no bodies of loops.",
        "".join(f"{line}\n" for line, _ in executed),
        counted(kind for _, kind in executed),
    )
    yield Unreadable("kernels", "The plugin generates machine code (oneDNN, Xbyak) without a text before it.")


def _lines(model: Any, indent: str) -> Iterator[tuple[str, str]]:
    """Each operation of a model as a line, with its type; after a loop those of its body."""
    for node in model.get_ordered_ops():
        kind = str(node.get_type_name())
        read = ", ".join(value.get_node().get_friendly_name() for value in node.input_values())
        shapes = ", ".join(str(port.get_partial_shape()) for port in node.outputs())
        yield f"{indent}{node.get_friendly_name()} = {kind}({read}) : {shapes}", kind
        for body in bodies_of(node):
            yield from _lines(body, f"{indent}    ")


def _executed(node: Any) -> tuple[str, str]:
    facts = node.get_rt_info()
    kind, kernel, made_of = (facts[name].astype(str) for name in ("layerType", "primitiveType", "originalLayersNames"))
    return f"{node.get_friendly_name()} = {kind} by {kernel}, made of {made_of}", kind
