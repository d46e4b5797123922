"""A converted model: what it contains, and the changes that the converter does not make (a clip, int8 weights)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from rnnbench.backends.base import BuildError
from rnnbench.backends.litert.store import FUSED, INT8_PRODUCT, PRODUCT
from rnnbench.backends.shared import describe_lowered
from rnnbench.rnn import Model, Weights, in_int8

_NAMES = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
_FROM_X, _FROM_H = (1, 2, 3, 4), (5, 6, 7, 8)
"""The numbers of the fused operator's inputs that are its weights, a matrix for each gate."""
_H, _C = 18, 19
"""The numbers of the fused operator's inputs that are its state: variable tensors, which it writes."""


class Flatbuffer:
    """An unpacked model."""

    def __init__(self, data: bytes) -> None:
        self._model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(data, 0))

    @cached_property
    def _step(self) -> int:
        steps = [s.subgraphIndex for s in self._model.signatureDefs if s.signatureKey == b"step"]
        return int(steps[0])

    def pack(self) -> bytes:
        builder = flatbuffers.Builder()
        builder.Finish(self._model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def operations(self) -> dict[str, int]:
        """The number of each operator in the model. A product of int8 weights has a name of its own."""
        names = Counter(
            INT8_PRODUCT if name == PRODUCT and self._matrix(index, operator).type == schema.TensorType.INT8 else name
            for index in range(len(self._model.subgraphs))
            for name, operator in self._operators(index)
        )
        return dict(sorted(names.items()))

    def listing(self) -> Iterator[str]:
        """Each operator with the tensors that it reads and gives, by subgraph."""
        for index, subgraph in enumerate(self._model.subgraphs):
            yield f"subgraph {index} {(subgraph.name or b'').decode(errors='replace')}"
            for name, operator in self._operators(index):
                outputs, inputs = (
                    ", ".join(_tensor(subgraph, number) for number in (() if numbers is None else numbers))
                    for numbers in (operator.outputs, operator.inputs)
                )
                body = f" body: subgraph {operator.builtinOptions.bodySubgraphIndex}" if name == "WHILE" else ""
                yield f"  {outputs} = {name}({inputs}){body}"

    def lowered(self, model: Model) -> str:
        """How the time steps of `step` were lowered. Copies of the cell are counted by an operator that each has."""
        loops, straight = [], 0
        waiting = [(self._step, False)]
        while waiting:
            index, inside = waiting.pop()
            copies = self._copies(index, model)
            if inside:
                loops.append(copies)
            else:
                straight += copies
            bodies = (
                operator.builtinOptions.bodySubgraphIndex
                for name, operator in self._operators(index)
                if name == "WHILE"
            )
            waiting.extend((body, True) for body in bodies)
        if any(name == FUSED for name, _ in self._operators(self._step)):
            return "fused"
        return describe_lowered([copies for copies in loops if copies], straight)

    def fused_state(self) -> list[list[int]]:
        """For each fused operator, in order, the numbers of its tensors h and c."""
        return [
            [int(operator.inputs[_H]), int(operator.inputs[_C])]
            for name, operator in self._operators(self._step)
            if name == FUSED
        ]

    def set_cell_clip(self, bound: float | None) -> None:
        """Set the bound of every fused operator. The converter sets 10 by itself; 0 means no clip."""
        for name, operator in self._operators(self._step):
            if name == FUSED:
                operator.builtinOptions.cellClip = bound or 0.0

    def set_int8_weights(self, weights: Weights) -> None:
        """Give every fused operator, or every product by a matrix, its weights in int8 with the scale of the matrix.

        Raises BuildError where a matrix is in no product as a whole.
        """
        if any(name == FUSED for name, _ in self._operators(self._step)):
            self._set_int8_operators(weights)
        else:
            self._set_int8_products(weights)

    def _set_int8_operators(self, weights: Weights) -> None:
        fused = [operator for name, operator in self._operators(self._step) if name == FUSED]
        for operator, layer in zip(fused, weights.layers, strict=True):
            for inputs, matrix in ((_FROM_X, layer.w_ih), (_FROM_H, layer.w_hh)):
                for number in inputs:
                    tensor = self._model.subgraphs[self._step].tensors[int(operator.inputs[number])]
                    self._set_int8([tensor], in_int8(matrix).scale)

    def _set_int8_products(self, weights: Weights) -> None:
        matrices = [m for layer in weights.layers for m in (layer.w_ih, layer.w_hh, layer.w_hr) if m is not None]
        tensors: defaultdict[int, list[Any]] = defaultdict(list)  # By their buffers, which copies of the cell share.
        for index in range(len(self._model.subgraphs)):
            for name, operator in self._operators(index):
                if name == PRODUCT and (tensor := self._matrix(index, operator)) not in tensors[tensor.buffer]:
                    tensors[tensor.buffer].append(tensor)
        in_products = set()
        for buffer, sharing in tensors.items():
            values = np.frombuffer(self._bytes_of(buffer), np.float32)
            for number, matrix in enumerate(matrices):
                if list(matrix.shape) == list(sharing[0].shape) and np.array_equal(values, matrix.ravel()):
                    in_products.add(number)
                    self._set_int8(sharing, in_int8(matrix).scale)
                    break
        if len(in_products) < len(matrices):
            missing = len(matrices) - len(in_products)
            raise BuildError(f"{missing} of {len(matrices)} matrices are in no {PRODUCT} as a whole, so not in int8")

    def _set_int8(self, tensors: Sequence[Any], scale: float) -> None:
        """Set the values of tensors that share one buffer."""
        buffer = self._model.buffers[tensors[0].buffer]
        values = np.frombuffer(bytes(buffer.data), np.float32)
        buffer.data = np.rint(values / scale).astype(np.int8).view(np.uint8)
        for tensor in tensors:
            tensor.type = schema.TensorType.INT8
            tensor.quantization = schema.QuantizationParametersT(scale=[scale], zeroPoint=[0])

    def _matrix(self, subgraph: int, product: Any) -> Any:
        """The tensor of a product's weights."""
        return self._model.subgraphs[subgraph].tensors[int(product.inputs[1])]

    def _bytes_of(self, buffer: int) -> bytes:
        """Empty for what is computed."""
        data = self._model.buffers[buffer].data
        return b"" if data is None else bytes(data)

    def _operators(self, subgraph: int) -> Iterator[tuple[str, Any]]:
        for operator in self._model.subgraphs[subgraph].operators:
            yield _NAMES[self._model.operatorCodes[operator.opcodeIndex].builtinCode], operator

    def _copies(self, subgraph: int, model: Model) -> int:
        if model.cell == "counter":
            tensors = self._model.subgraphs[subgraph].tensors
            sums = (operator.outputs[0] for name, operator in self._operators(subgraph) if name == "ADD")
            return sum(tensors[output].type == schema.TensorType.FLOAT32 for output in sums)
        if model.activation == "relu":
            activations = sum(name == "RELU" or _ends_in_relu(operator) for name, operator in self._operators(subgraph))
        else:
            activations = sum(name == "TANH" for name, _ in self._operators(subgraph))
        return activations // 2 if model.cell == "lstm" else activations


def _tensor(subgraph: Any, number: int) -> str:
    """A tensor by its number, with its shape; an input that is left out has the number -1."""
    if number < 0:
        return "none"
    shape = subgraph.tensors[number].shape
    return f"%{number}{[] if shape is None else [int(size) for size in shape]}"


def _ends_in_relu(operator: Any) -> bool:
    fused = getattr(operator.builtinOptions, "fusedActivationFunction", schema.ActivationFunctionType.NONE)
    return bool(fused == schema.ActivationFunctionType.RELU)
