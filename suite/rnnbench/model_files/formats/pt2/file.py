"""Reading a `.pt2` file (torch.export) within limits: a zip with a graph as JSON and weights as bytes.

`torch.export.load` is not used. It unpickles sample inputs and, where their entries say so, weights and constants, and
evaluates sizes as Python expressions (sympify). Here the graph is data: its nodes name operators of ATen.
Source: torch/_export/serde/schema.py and torch/export/pt2_archive (torch 2.13, schema 8).
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.description import Dim
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.file_bytes import read_bytes, unpacked
from rnnbench.model_files.formats.pt2.graph import DTYPES, UNREAD, Pt2Array, Pt2File, Pt2Node, all_nodes
from rnnbench.model_files.formats.pt2.nodes import nodes_of
from rnnbench.model_files.formats.pt2.operators import written
from rnnbench.outside_text import safe_text
from rnnbench.rnn import from_bits

MODEL = "/models/model.json"
_SAVE = "save it with torch.export.save (TorchScript and what AOTInductor compiled are not read)"
STORED = {"bfloat16": "uint16"}
"""The type of the bits of elements that NumPy has no type for."""
_NORMALISES = frozenset(("batch_norm", "instance_norm", "native_batch_norm"))
_MEANS, _TRAINING = 3, 5
"""Index of the running means, and of whether the call's own are used, in the arguments of these operators."""
_SYMBOL = re.compile(r"(?:Symbol\(')?(\w+)(?:'.*\))?")


def read_pt2(path: Path) -> Pt2File:
    """The file. Raises ModelFileError, and MissingExtraError without torch."""
    data = read_bytes(path)
    with parsing("it is no .pt2 file, or it is damaged"), zipfile.ZipFile(BytesIO(data)) as archive:
        return _Reader(archive).file()


class _Reader:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        entries = archive.infolist()
        if len(entries) > limits.NODES or sum(entry.file_size for entry in entries) > limits.WEIGHT_BYTES:
            raise ModelFileError(f"it unpacks to more than {limits.WEIGHT_BYTES >> 30} GiB; that much is not read")
        self._entries = {entry.filename: entry for entry in entries}
        self._expanded = 0
        self._names, self._memory = dict[str, str](), dict[str, str]()
        """The name of each weight in the file by its value, and where the file has it by its name."""
        roots = [name.removesuffix(MODEL) for name in self._entries if name.endswith(MODEL)]
        if len(roots) != 1 or len(self._entries) != len(entries):
            raise ModelFileError(f"it is no .pt2 file of torch.export: it does not have one models/model.json; {_SAVE}")
        (self._root,) = roots

    def file(self) -> Pt2File:
        model = self._json(MODEL)
        graph, signature = model["graph_module"]["graph"], model["graph_module"]["signature"]
        nodes, self._tensors = nodes_of(graph)
        _check_inference(nodes)
        weights, buffers, inputs = self._read_inputs(signature["input_specs"])
        after, outputs = self._read_outputs(signature["output_specs"])
        changed, sharing = self._written(nodes, weights, buffers, inputs, after.values())
        after |= {buffers[value]: value for value in changed}
        values = {name: value for value, name in buffers.items()}
        taken = {name for node in nodes for name in node.takes()}
        self._check_memory([values[name] for name in after], {*taken, *after.values()})
        states = tuple(
            (self._array(name, values[name]), self._array(f"{name}_next", after[name])) for name in sorted(after)
        )
        if len(inputs) + len(outputs) + len(states) > limits.ARRAYS:
            raise ModelFileError(f"it has {len(inputs) + len(outputs):,} inputs and outputs; that many are not read")
        producer = f"torch {model.get('torch_version', '')}".strip()
        given_twice = {value for value, times in Counter(array.value for array in outputs).items() if times > 1}
        shared = frozenset(array.value for array in outputs if array.value in {*sharing, *given_twice})
        types = {value: _type_name(meta["dtype"]) for value, meta in self._tensors.items()}
        ends = tuple(inputs), tuple(outputs)
        return Pt2File(nodes, weights, *ends, states, shared, safe_text(producer, 100), types)

    def _json(self, name: str) -> Any:
        entry = self._entries.get(self._root + name)
        if entry is None or entry.file_size > limits.JSON_BYTES:
            raise ModelFileError(f"its {name} is missing, or larger than {limits.JSON_BYTES >> 20} MiB")
        content = unpacked(self._archive, entry)
        with parsing(f"its {safe_text(entry.filename, 120)} is damaged"):
            return json.loads(content)

    def _read_inputs(self, specs: list[Any]) -> tuple[dict[str, np.ndarray], dict[str, str], list[Pt2Array]]:
        """Weights by value, the names of buffers by value, and the inputs."""
        stored = dict(self._stored("weights", "model_weights_config.json"))
        stored |= dict(self._stored("constants", "model_constants_config.json"))
        weights: dict[str, np.ndarray] = {}
        buffers: dict[str, str] = {}
        inputs = []
        for spec in specs:
            ((kind, fields),) = spec.items()
            if kind == "constant_input":
                continue  # A number, a text or None, whose value is in the graph.
            if kind == "user_input":
                value = _only(fields["arg"], "as_tensor", "an input is no tensor")["name"]
                inputs.append(self._array(value, value))
            elif kind in ("parameter", "buffer", "tensor_constant"):
                value, name = fields["arg"]["name"], fields[f"{kind}_name"]
                weights[value] = stored[name]
                self._names[value] = name
                if kind == "buffer":
                    buffers[value] = name
            else:
                raise ModelFileError(f"it has an input of the kind {safe_text(str(kind), 60)}, which is not read")
        return weights, buffers, inputs

    def _read_outputs(self, specs: list[Any]) -> tuple[dict[str, str], list[Pt2Array]]:
        """The value of each buffer after a call, by its name, and the outputs."""
        after: dict[str, str] = {}
        outputs = []
        for spec in specs:
            ((kind, fields),) = spec.items()
            if kind == "buffer_mutation":
                after[fields["buffer_name"]] = fields["arg"]["name"]
            elif kind in ("user_input_mutation", "parameter_mutation"):
                is_input = kind == "user_input_mutation"
                value = fields["user_input_name" if is_input else "parameter_name"]
                raise ModelFileError(_writes("input" if is_input else "weight", str(value)))
            elif kind == "user_output":
                value = _only(fields["arg"], "as_tensor", "an output is no tensor")["name"]
                outputs.append(self._array(value, value))
            else:
                raise ModelFileError(f"it has an output of the kind {safe_text(str(kind), 60)}, which is not read")
        return after, _with_own_names(outputs)

    def _written(
        self,
        nodes: Sequence[Pt2Node],
        weights: Mapping[str, Any],
        buffers: Mapping[str, str],
        inputs: list[Pt2Array],
        after: Collection[str],
    ) -> tuple[set[str], Collection[str]]:
        """The values of buffers that operators write, and those that share the memory of a value that outlives a call.

        Raises ModelFileError where operators write an input or another weight.
        """
        input_values = {array.value for array in inputs}
        types = {value: meta["dtype"] for value, meta in self._tensors.items()}
        found, sharing = written(nodes, {*weights, *input_values, *after}, types)
        for value in sorted(found - buffers.keys() - set(after)):
            raise ModelFileError(_writes("input" if value in input_values else "weight", value))
        return found & buffers.keys(), sharing

    def _check_memory(self, changed: Collection[str], taken: Collection[str]) -> None:
        """Raises ModelFileError where a call takes another weight in the memory of a buffer that it changes."""
        for value in changed:
            memory = self._memory[self._names[value]]
            others = (name for other, name in self._names.items() if other != value and other in taken)
            if shared := next((name for name in others if self._memory[name] == memory), None):
                names = (safe_text(name, 80) for name in (self._names[value], shared))
                raise ModelFileError(
                    "a call changes its buffer '{}', and takes '{}', which lies in the same memory; export a network "
                    "that makes the one of the other when it is called".format(*names)
                )

    def _array(self, name: str, value: str) -> Pt2Array:
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= limits.NAME_CHARACTERS:
            raise ModelFileError("an input or output has a name that cannot be printed")
        meta = self._tensors[value]
        dims = tuple(map(_dim, meta["sizes"]))
        if math.prod(dim for dim in dims if isinstance(dim, int)) > limits.ELEMENTS:
            raise ModelFileError(f"{name} has the shape {list(dims)}; that many elements are not read")
        return Pt2Array(name, value, dims, _type_name(meta["dtype"]))

    def _stored(self, folder: str, config: str) -> Iterator[tuple[str, np.ndarray]]:
        for name, entry in self._json(f"/data/{folder}/{config}")["config"].items():
            shown = safe_text(str(name), 80)
            if entry["use_pickle"]:
                raise ModelFileError(f"its weight '{shown}' is a pickle, which can run any program when it is loaded")
            if not re.fullmatch(r"(?:weight|tensor)_\d+", entry["path_name"]):
                raise ModelFileError(
                    f"its weight '{shown}' is in '{safe_text(entry['path_name'], 80)}'; it is not read"
                )
            self._memory[name] = entry["path_name"]
            yield name, self._tensor(shown, f"{self._root}/data/{folder}/{entry['path_name']}", entry["tensor_meta"])

    def _tensor(self, shown: str, path: str, meta: Mapping[str, Any]) -> np.ndarray:
        if meta["dtype"] not in DTYPES:
            kind = _type_name(meta["dtype"])
            raise ModelFileError(f"its weight '{shown}' has elements of {kind}, which are not read")
        name = DTYPES[meta["dtype"]]
        dtype, shape = np.dtype(STORED.get(name, name)), [_whole(size) for size in meta["sizes"]]
        strides, offset = [_whole(size) for size in meta["strides"]], _whole(meta["storage_offset"])
        there, elements = self._entries[path].file_size, math.prod(shape, start=1)
        ahead = (stride * (size - 1) for size, stride in zip(shape, strides, strict=True))
        needed = offset + sum(ahead) + 1 if elements else 0
        self._expanded += max(0, elements * dtype.itemsize - there)
        if self._expanded > limits.EXPANDED_BYTES:
            needed = max(needed, elements)
        if there < needed * dtype.itemsize or there % dtype.itemsize:
            raise ModelFileError(
                f"its weight '{shown}' has {there:,} bytes, where its shape {shape} of {name} and its strides "
                f"call for {needed * dtype.itemsize:,}"
            )
        stored = np.frombuffer(unpacked(self._archive, self._entries[path]), dtype)
        if name in STORED:
            stored = from_bits(stored)
        if not elements:
            return np.zeros(shape, stored.dtype)
        laid_out = [stride * stored.itemsize for stride in strides]
        return np.lib.stride_tricks.as_strided(stored[offset:], shape, laid_out).copy()


def _check_inference(nodes: Sequence[Pt2Node]) -> None:
    """Raises ModelFileError where a call changes running means, which torch does not declare of these operators."""
    for node in all_nodes(nodes):
        means, training = (node.args[place] if place < len(node.args) else None for place in (_MEANS, _TRAINING))
        if node.operator in _NORMALISES and training is True and means is not None:
            raise ModelFileError(
                f"{node.operator} is in training mode, where it changes its running means; export the network for "
                "inference (eval())"
            )


def _with_own_names(outputs: Sequence[Pt2Array]) -> list[Pt2Array]:
    """The outputs, of which later ones of the same value have a number: a cell gives h as y and as its next state."""
    taken, named = {array.value for array in outputs}, list[Pt2Array]()
    for array in outputs:
        others = (f"{array.value}_{number}" for number in count(1))
        again = any(array.value == earlier.value for earlier in named)
        name = next(other for other in others if other not in taken) if again else array.name
        taken.add(name)
        named.append(replace(array, name=name))
    return named


def _writes(what: str, name: str) -> str:
    return (
        f"a call writes its {what} '{safe_text(name, 80)}' in place, so a state may be in it; "
        "export a network that keeps its states in buffers, or has them as inputs and outputs"
    )


def _type_name(number: Any) -> str:
    return DTYPES.get(number) or UNREAD.get(number) or f"type {int(number)}"


def _dim(size: Mapping[str, Any]) -> Dim:
    if "as_int" in size:
        return _whole(size)
    symbol = _SYMBOL.fullmatch(size["as_expr"]["expr_str"])
    return symbol[1] if symbol else None


def _whole(size: Mapping[str, Any]) -> int:
    number = size["as_int"]
    if type(number) is not int or number < 0:
        raise ModelFileError(f"a size is {safe_text(str(number), 40)}; expected a whole number")
    return number


def _only(arg: Mapping[str, Any], kind: str, told: str) -> Any:
    if kind not in arg:
        raise ModelFileError(told)
    return arg[kind]
