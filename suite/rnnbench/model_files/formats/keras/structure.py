"""Whether the layers of a file are described as Keras describes them: what is wrong otherwise, and where.

Keras itself raises a KeyError or an IndexError, which says neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.keras.layers import LAYERS, MODELS
from rnnbench.outside_text import safe_text

_WORDS: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text"}
_INPUT = "InputLayer"
_FUNCTIONAL = frozenset(("Functional", "Model"))
"""The second one is Keras 2's name."""
_INNER: Mapping[str, str] = {"Bidirectional": "layer", "TimeDistributed": "layer", "RNN": "cell"}
"""Where layers have the description of another one."""
_DESCRIBED = LAYERS | MODELS | _FUNCTIONAL | {"DTypePolicy"}
_CONSTANT = "_CONSTANT_VALUE"
"""In the place of a layer's name, where Keras 2 gives a constant to a function."""


def require_structure(config: Any) -> None:
    """Raises ModelFileError unless each layer of a model has a class, a config, and inputs that are there."""
    waiting = [(config, "its model")]
    if isinstance(config, dict) and config.get("config") is None:
        _refuse("its model", "'config' is", None, dict)
    while waiting:
        part, where = waiting.pop()
        if isinstance(part, list):
            waiting += [(item, where) for item in part]
        if not isinstance(part, dict):
            continue
        kind = part.get("class_name")
        if "class_name" in part and isinstance(part.get("config"), dict):
            _typed(part, "class_name", str, where)
            if part.get("module") is not None:
                _typed(part, "module", str, where)
        if isinstance(kind, str) and kind in _DESCRIBED and "config" in part:
            where = _place(part, kind)
            if kind == "Sequential" and isinstance(part["config"], list):  # Of Keras until 2.2.3.
                part = {**part, "config": {"layers": part["config"]}}
            inner = _typed(part, "config", dict, where)
            if kind in MODELS | _FUNCTIONAL:
                _require_model(inner, where, has_calls=kind in _FUNCTIONAL)
            if kind in _INNER:
                _typed(inner, _INNER[kind], dict, where)
        waiting += [(value, where) for value in part.values()]


def _require_model(model: dict[str, Any], where: str, *, has_calls: bool) -> None:
    calls: dict[str, int] = {}
    layers = _typed(model, "layers", list, where)
    for number, layer in enumerate(layers):
        place = f"{where}, layer {number}"
        if not isinstance(layer, dict):
            _refuse(place, "is", layer, dict)
        _typed(layer, "config", dict, place)
        _typed(layer, "class_name", str, place)
        name = _typed(layer, "name", str, place) if has_calls else ""
        calls[name] = len(_typed(layer, "inbound_nodes", list, _named(name))) if has_calls else 0
        if has_calls and not calls[name] and layer["class_name"] != _INPUT:
            raise ModelFileError(f"{_named(name)}: it has no inputs; {_DAMAGED}")
    if not has_calls:
        return
    for key in ("input_layers", "output_layers"):
        if not (tensors := [*_tensors(model.get(key))]):
            raise ModelFileError(f"{where}: '{key}' names no tensor of a layer; {_DAMAGED}")
        _require_there(tensors, calls, f"{where}: '{key}'")
    for layer in layers:
        place = _named(layer["name"])
        for node in layer["inbound_nodes"]:
            if isinstance(node, dict):
                _typed(node, "args", list, place)
                _typed(node, "kwargs", dict, place)
            elif not isinstance(node, list):
                _refuse(place, "has among its inputs", node, dict)
            _require_there(_tensors(node), calls, place)


def _require_there(tensors: Any, calls: Mapping[str, int], where: str) -> None:
    for name, call, _ in tensors:
        if name == _CONSTANT:
            continue
        if name not in calls:
            raise ModelFileError(f"{where} names the layer '{safe_text(name, 80)}', which is not there; {_DAMAGED}")
        if not 0 <= call <= max(calls[name], 1):  # Keras 2 counts the calls of a model in it from 1.
            raise ModelFileError(f"{where} names call {call} of {_named(name)}, which has {calls[name]}; {_DAMAGED}")


def _tensors(value: Any) -> Iterator[tuple[str, int, int]]:
    """The tensors in a part of a description: `[layer, call, output]`, as Keras 2 and 3 write them."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list) and len(part) in (3, 4) and isinstance(part[0], str) and isinstance(part[1], int):
            yield part[0], part[1], part[2]
            waiting += part[3:]
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _typed(part: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    value = part.get(key)
    if not isinstance(value, kind):
        _refuse(where, f"'{key}' is", value, kind)
    return value


def _place(layer: Mapping[str, Any], kind: str) -> str:
    config = layer["config"]
    name = config.get("name") if isinstance(config, dict) else None
    return _named(name) if isinstance(name, str) else f"its {kind}"


def _named(name: str) -> str:
    return f"its layer '{safe_text(name, 80)}'"


_DAMAGED = "Keras writes no such file, so it is damaged or edited; save the network again"


def _refuse(where: str, what: str, value: Any, kind: type) -> NoReturn:
    shown = "missing" if value is None else safe_text(repr(value), 60)
    raise ModelFileError(f"{where}: {what} {shown}, where Keras writes {_WORDS[kind]}; {_DAMAGED}")
