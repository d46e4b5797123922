"""A traced function of TensorFlow, computed operation by operation: in float64, or rounded after each of them.

Loops and called functions are followed, so that their operations are rounded too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.operator_rounding import Kind, rounded_result
from rnnbench.optional import require
from rnnbench.rnn import Arithmetic, RandomRounding

PURPOSE = "tensorflow", "computing a file of TensorFlow"
_SETTINGS = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
EXACT = frozenset(
    (
        *("Identity", "IdentityN", "ReadVariableOp", "StopGradient", "Cast", "Const", "Fill", "ZerosLike", "OnesLike"),
        *("Reshape", "Squeeze", "ExpandDims", "Transpose", "StridedSlice", "Slice", "Split", "SplitV"),
        *("Pack", "Unpack", "EnsureShape"),
        *("ConcatV2", "Tile", "GatherV2", "ResourceGather", "GatherNd", "ReverseV2", "BroadcastTo", "Range", "Where"),
        *("Pad", "PadV2", "MirrorPad", "SpaceToBatchND", "BatchToSpaceND", "Select", "SelectV2", "TensorScatterUpdate"),
        *("Relu", "Relu6", "Neg", "Abs", "Sign", "Floor", "Maximum", "Minimum", "Max", "Min", "MaxPool", "ClipByValue"),
        *("TensorListGetItem", "TensorListStack", "TensorListConcatV2", "TensorListGather"),
        *("Round", "Rint", "Ceil", "Roll", "OneHot", "TopKV2", "MatrixBandPart", "InvertPermutation", "ScatterNd"),
        *("SpaceToDepth", "DepthToSpace", "ResizeNearestNeighbor", "ReverseSequence"),
    )
)
"""Operations that give elements of what they get, or are exact."""
ACTIVATIONS = frozenset(
    (
        *("Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Exp", "Expm1", "Log", "Log1p", "Elu", "Selu", "Softplus"),
        *("Softsign", "Erf", "Erfc", "Pow", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Atan2", "Sinh", "Cosh"),
        *("Asinh", "Acosh", "Atanh", "Xlogy", "Xdivy", "Xlog1py", "Erfinv", "Lgamma"),
    )
)
PRODUCTS = frozenset(
    ("MatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Conv2DBackpropInput", "DepthwiseConv2dNative", "Einsum")
)
SUMS = frozenset(("Sum", "Mean", "AvgPool"))
FUSED = frozenset(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"))
"""Operations that become a call of others in float64, for which they have no kernel."""
_WHILE = frozenset(("While", "StatelessWhile"))
_IF = frozenset(("If", "StatelessIf"))
CHOICES = _WHILE | _IF
"""Operations that call functions as often as a condition says."""
CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))
"""Operations that call one function."""
_CALLED = {
    **dict.fromkeys(_WHILE, ("cond", "body")),
    **dict.fromkeys(_IF, ("then_branch", "else_branch")),
    **dict.fromkeys(CALLS, ("f",)),
}
"""The attributes that name functions."""
ASSIGNMENTS = frozenset(
    (
        *("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceStridedSliceAssign"),
        *("ResourceScatterUpdate", "ResourceScatterAdd", "ResourceScatterSub"),
        *("ResourceScatterNdUpdate", "ResourceScatterNdAdd", "ResourceScatterNdSub"),
    )
)
_PLAIN = frozenset(
    (
        *("Placeholder", "NoOp", "BiasAdd", "AddV2", "Add", "AddN", "Sub", "Mul", "RealDiv", "Div"),
        *("DivNoNan", "Square"),
        *("Sqrt", "Rsqrt", "SquaredDifference", "LeakyRelu", "FloorDiv", "FloorMod", "Shape", "Size", "Rank", "Prod"),
        *("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalNot"),
        *("All", "Any", "ArgMax", "Cumsum", "TensorListReserve", "TensorListFromTensor", "TensorListSetItem"),
        *("Reciprocal", "Inv", "IsNan", "IsInf", "IsFinite", "ArgMin", "Cumprod", "Mod", "TruncateMod", "TruncateDiv"),
        *("MulNoNan", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift", "LinSpace"),
        *("TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin", "Assert"),
        *("TensorListLength", "TensorListPushBack", "TensorListResize", "EmptyTensorList"),
        *("TensorListElementShape", "BroadcastArgs"),
    )
)
READ = EXACT | ACTIVATIONS | PRODUCTS | SUMS | FUSED | CHOICES | CALLS | ASSIGNMENTS | _PLAIN
"""Operations that compute and do nothing else, or change a variable: a graph of others is not read."""
_INPUTS = frozenset(("Placeholder", "NoOp"))
NARROW = "_narrow"
"""The attribute of an operation in float64 that names the narrower type in which the file has its results."""


def require_tensorflow() -> Any:
    """TensorFlow on the processor, without its log. Raises MissingExtraError."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    return require("tensorflow", *PURPOSE)


@dataclass(frozen=True)
class _Operation:
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    """As TensorFlow takes them of an operation that is run by itself."""
    called: tuple[_Plan, ...]
    """The functions that it calls: a loop's condition and body, both branches of a condition, or one function."""
    narrow: str
    """The type that its results have in the file, where that is narrower than what is around it."""


@dataclass(frozen=True)
class _Plan:
    """A graph, read once: TensorFlow takes longer to tell what an operation is than to run it."""

    inputs: tuple[str, ...]
    constants: Mapping[str, Any]
    operations: tuple[_Operation, ...]
    outputs: tuple[str, ...]


class TensorflowGraph:
    """A concrete function in float64."""

    def __init__(self, function: Any) -> None:
        """Raises ModelFileError where an operation computes in float32: its float64 result is not known."""
        self._tf = require("tensorflow", *PURPOSE)
        self._function, self._captured = function, list(function.captured_inputs)
        self._plan = _plan(self._tf, function.graph, function.graph)

    def __call__(self, arithmetic: Arithmetic, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs, of as many arrays as the function has arguments."""
        arguments = [self._tf.constant(array) for array in arrays]
        if not isinstance(arithmetic, RandomRounding) and arithmetic.dtype == "float64":
            results = self._tf.nest.flatten(self._function(*arguments))
        else:
            results = _Call(self._tf, arithmetic).run(self._plan, [*arguments, *self._captured])
        return [np.array(tensor) for tensor in results]


def _plan(tf: Any, graph: Any, outermost: Any) -> _Plan:
    constants: dict[str, Any] = {}
    operations, fixed = [], set[str]()
    for operation in graph.get_operations():
        names = {tensor.name for tensor in operation.outputs}
        if operation.type not in _INPUTS and all(tensor.name in fixed for tensor in operation.inputs):
            fixed |= names  # A constant in float32 is one of the float32 program, too.
        elif narrow := [tensor.dtype.name for tensor in operation.outputs if _is_narrow(tensor)]:
            raise ModelFileError(
                f"its operation {operation.type} computes in {narrow[0]}, so its float64 result is unknown; save the "
                "network in float32 throughout"
            )
        if operation.type == "Const":
            constants[operation.outputs[0].name] = tf.constant(tf.make_ndarray(operation.get_attr("value")))
        elif operation.type not in _INPUTS:
            operations.append(_operation(tf, graph, outermost, operation))
    inputs, outputs = (tuple(tensor.name for tensor in side) for side in (graph.inputs, graph.outputs))
    return _Plan(inputs, constants, tuple(operations), outputs)


def _is_narrow(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating and tensor.dtype.size < 8)


def _operation(tf: Any, graph: Any, outermost: Any, operation: Any) -> _Operation:
    called = [operation.get_attr(name).name for name in _CALLED.get(operation.type, ())]
    names = () if called else [attribute.name for attribute in operation.op_def.attr]
    return _Operation(
        kind=operation.type,
        inputs=tuple(tensor.name for tensor in operation.inputs),
        outputs=tuple(tensor.name for tensor in operation.outputs),
        attributes={name: _attribute(tf, operation.get_attr(name)) for name in names},
        called=tuple(_plan(tf, _graph_of(graph, outermost, name), outermost) for name in called),
        narrow=operation.node_def.attr[NARROW].s.decode(),
    )


def _graph_of(graph: Any, outermost: Any, name: str) -> Any:
    """The graph of a function: one that was traced here, or one that came into the outermost graph with a file."""
    function = graph._get_function(name) or outermost._get_function(name)
    if hasattr(function, "graph"):
        return function.graph
    convert = require("tensorflow.python.framework.function_def_to_graph", *PURPOSE).function_def_to_graph
    with outermost.as_default():
        return convert(function.definition)


def _attribute(tf: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_attribute(tf, item) for item in value]
    if isinstance(value, tf.DType):
        return value.as_datatype_enum
    return tf.TensorShape(value) if hasattr(value, "unknown_rank") else value


class _Call:
    def __init__(self, tf: Any, arithmetic: Arithmetic) -> None:
        self._tf, self._arithmetic, self._passes = tf, arithmetic, 0
        self._execute = require("tensorflow.python.eager.execute", *PURPOSE).execute
        self._context = require("tensorflow.python.eager.context", *PURPOSE).context()

    def run(self, plan: _Plan, arguments: Sequence[Any]) -> list[Any]:
        values = {**plan.constants, **dict(zip(plan.inputs, arguments, strict=True))}
        for operation in plan.operations:
            results = self._outputs_of(operation, [values[name] for name in operation.inputs])
            values |= zip(operation.outputs, results, strict=True)
        return [values[name] for name in plan.outputs]

    def _outputs_of(self, operation: _Operation, inputs: list[Any]) -> Sequence[Any]:
        if operation.kind in _WHILE:
            condition, body = operation.called
            return self._loop(condition, body, inputs)
        if operation.kind in _IF:
            chosen, other = operation.called
            return self.run(chosen if bool(inputs[0]) else other, inputs[1:])
        if operation.kind in CALLS:
            (function,) = operation.called
            return self.run(function, inputs)
        results = self._executed(operation, inputs)
        if operation.kind in EXACT and not (operation.kind == "Cast" and operation.narrow):
            return results
        return [
            self._rounded(operation, inputs, result) if result.dtype == self._tf.float64 else result
            for result in results
        ]

    def _loop(self, condition: _Plan, body: _Plan, values: Sequence[Any]) -> Sequence[Any]:
        while bool(self.run(condition, values)[0]):
            self._passes += 1
            if self._passes > limits.PASSES:
                raise ModelFileError(f"its loops take more than {limits.PASSES:,} passes in one call")
            values = self.run(body, values)
        return values

    def _executed(self, operation: _Operation, inputs: Sequence[Any]) -> Sequence[Any]:
        """One operation, run by itself on tensors. The function is private to TensorFlow 2.21."""
        attributes = tuple(part for attribute in operation.attributes.items() for part in attribute)
        results = self._execute(
            operation.kind.encode(), len(operation.outputs), list(inputs), attributes, self._context
        )
        return results or []

    def _rounded(self, operation: _Operation, inputs: Sequence[Any], output: Any) -> Any:
        kind: Kind = "operation"
        if operation.kind in PRODUCTS or operation.kind in SUMS:
            kind = "sum"
        elif operation.kind in ACTIVATIONS:
            kind = "activation"
        terms = _terms(operation, inputs, output) if kind == "sum" else 1
        squares = partial(self._squares, operation, inputs, terms)
        arithmetic = self._arithmetic.narrowed(operation.narrow) if operation.narrow else self._arithmetic
        return self._tf.constant(rounded_result(arithmetic, output.numpy(), kind, terms, squares))

    def _squares(self, operation: _Operation, inputs: Sequence[Any], terms: int) -> np.ndarray:
        """The sum of the squares of the terms. The operation is linear in the arrays that it sums."""
        arrays = 1 if operation.kind in SUMS else len(inputs)
        squared = [
            self._tf.square(tensor) if index < arrays and tensor.dtype.is_floating else tensor
            for index, tensor in enumerate(inputs)
        ]
        squares = np.asarray(self._executed(operation, squared)[0].numpy())
        return squares / max(1, terms) if operation.kind in ("Mean", "AvgPool") else squares


def _terms(operation: _Operation, inputs: Sequence[Any], output: Any) -> int:
    """Products or numbers that each element of a sum adds up."""
    if operation.kind in SUMS:
        return _size(inputs[0]) // max(1, _size(output))
    shape = [int(size) for size in inputs[1].shape]
    if operation.kind == "Einsum":
        return _contracted(operation.attributes["equation"].decode(), inputs)
    if operation.kind == "Conv2D":
        return math.prod(shape[:3])
    if operation.kind == "Conv2DBackpropInput":
        return math.prod(shape) // max(1, shape[2])
    if operation.kind == "DepthwiseConv2dNative":
        return math.prod(shape[:2])
    turned = operation.attributes["transpose_b" if operation.kind == "MatMul" else "adj_y"]
    return shape[-1] if turned else shape[-2]


def _contracted(equation: str, inputs: Sequence[Any]) -> int:
    """The product of the sizes of the axes that an einsum sums over."""
    inputs_labels, _, output_labels = equation.partition("->")
    sizes: dict[str, int] = {}
    for labels, tensor in zip(inputs_labels.split(","), inputs, strict=True):
        first, _, last = labels.partition("...")
        shape = [int(size) for size in tensor.shape]
        sizes |= dict(zip(first, shape, strict=False))
        sizes |= dict(zip(last, shape[len(shape) - len(last) :], strict=True))
    return math.prod(size for label, size in sizes.items() if label not in output_labels)


def _size(tensor: Any) -> int:
    return math.prod(int(size) for size in tensor.shape)
