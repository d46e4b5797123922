"""From the parser's objects to plain values."""

from __future__ import annotations

import math
import re
from itertools import count
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.stablehlo.graph import CONSTANT, DTYPES, Node, Region, TensorType
from rnnbench.outside_text import safe_text
from rnnbench.rnn import from_bits, rounded

_RETURNS = ("func.return", "stablehlo.return")
_HEXADECIMAL = re.compile(r'dense<"0x([0-9A-Fa-f]*)">')
_NUMBERS = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


def plain_type(ir: Any, type_: Any) -> TensorType:
    """Raises ModelFileError for what is no tensor of fixed sizes."""
    shown = safe_text(str(type_), 80)
    if not isinstance(type_, ir.RankedTensorType):
        raise ModelFileError(f"a value is of the type {shown}; tensors are read")
    tensor: Any = type_
    if not tensor.has_static_shape:
        raise ModelFileError(f"a value is a {shown}, with an open size; lower the network for one size")
    if str(tensor.element_type) not in DTYPES:
        raise ModelFileError(
            f"a value is a {shown}; elements of {safe_text(str(tensor.element_type), 40)} are not read; "
            "export the function with float32 in their place"
        )
    return TensorType(tuple(tensor.shape), DTYPES[str(tensor.element_type)])


class Numbered:
    """Values of one function by numbers."""

    def __init__(self, ir: Any) -> None:
        self._ir, self._numbers, self._count = ir, dict[Any, int](), count()
        self._types: dict[Any, TensorType] = {}

    def region(self, region: Any) -> Region:
        if len(region.blocks) != 1:
            raise ModelFileError("a function or loop has several blocks; StableHLO has one in each")
        (block,) = region.blocks
        arguments = tuple(self._number(argument) for argument in block.arguments)
        for argument in block.arguments:
            self._type(argument.type)
        *operations, last = [item.operation for item in block.operations]
        if last.name not in _RETURNS:
            raise ModelFileError(f"a function or loop ends in {safe_text(last.name, 80)}")
        return Region(arguments, tuple(map(self._node, operations)), tuple(map(self._number_of, last.operands)))

    def _node(self, operation: Any) -> Node:
        inputs = tuple(map(self._number_of, operation.operands))
        types = tuple(self._type(result.type) for result in operation.results)
        if any(math.prod(type_.shape) > limits.ELEMENTS for type_ in types):
            raise ModelFileError(f"{operation.name} gives more than {limits.ELEMENTS:,} elements; that is not read")
        regions = tuple(map(self.region, operation.regions))
        names = [attribute if isinstance(attribute, str) else attribute.name for attribute in operation.attributes]
        attributes = {name: self._plain(operation.attributes[name]) for name in names}
        if operation.name == CONSTANT and not isinstance(attributes["value"], np.ndarray):
            raise ModelFileError("a constant has its values in a resource (dense_resource); print it with its values")
        outputs = tuple(map(self._number, operation.results))
        return Node(operation.name, inputs, outputs, types, attributes, regions)

    def _type(self, type_: Any) -> TensorType:
        if type_ not in self._types:
            self._types[type_] = plain_type(self._ir, type_)
        return self._types[type_]

    def _number(self, value: Any) -> int:
        return self._numbers.setdefault(value, next(self._count))

    def _number_of(self, value: Any) -> int:
        return self._numbers[value]

    def _plain(self, attribute: Any) -> Any:
        ir = self._ir
        if isinstance(attribute, ir.DenseElementsAttr):
            return plain_array(ir, attribute)
        if isinstance(attribute, (ir.DenseI64ArrayAttr, ir.DenseBoolArrayAttr)):
            return tuple(attribute)
        if isinstance(attribute, (ir.IntegerAttr, ir.StringAttr, ir.FlatSymbolRefAttr)):
            return attribute.value
        return str(attribute)


def plain_array(ir: Any, attribute: Any) -> np.ndarray:
    """A copy; of a repeated element one copy that is seen as often."""
    type_ = plain_type(ir, attribute.type)
    if math.prod(type_.shape) > limits.ELEMENTS:
        raise ModelFileError(f"a constant has more than {limits.ELEMENTS:,} elements; that many are not read")
    if type_.dtype == "bfloat16":
        return _bfloat16(str(attribute), type_.shape)
    values = np.asarray(attribute)
    if attribute.is_splat and values.size:
        return np.broadcast_to(np.array(values[(0,) * values.ndim], type_.dtype), type_.shape)
    return np.array(values, type_.dtype)


def _bfloat16(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of bfloat16 in float32, read from the text of MLIR, whose Python API gives no access to their memory.

    Large arrays are printed as bytes. In others, seven printed digits identify a number, and infinities and NaN are
    printed as bits.
    """
    body = text.rpartition(" : ")[0]
    if hexadecimal := _HEXADECIMAL.fullmatch(body):
        return from_bits(np.frombuffer(bytes.fromhex(hexadecimal[1]), "<u2")).reshape(shape)
    printed = _NUMBERS.findall(body.removeprefix("dense<"))
    values = [float(from_bits(np.array(int(number, 16)))) if "x" in number else float(number) for number in printed]
    numbers = rounded(np.array(values), "bfloat16")
    if len(values) == 1 and math.prod(shape) > 0:
        return np.broadcast_to(numbers[0], shape)
    return numbers.reshape(shape)
