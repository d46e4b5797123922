"""TFLite files for tests, written with LiteRT's own schema: no TensorFlow is needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

KIND = {
    np.dtype(name): getattr(schema.TensorType, name.upper()) for name in ("float32", "int32", "int16", "int8", "bool")
}


class Writer:
    """Adds tensors and operators to a model of one graph."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version, self.model.description = 3, b"written by hand"
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs, self.model.signatureDefs = [self.graph], []

    def value(self, name: str, sizes: Sequence[int], dtype: str = "float32") -> int:
        """A tensor without data. −1 is a size that the caller chooses."""
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.buffer = name.encode(), KIND[np.dtype(dtype)], 0
        tensor.shape, tensor.shapeSignature = [max(size, 1) for size in sizes], list(sizes)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, name: str, values: np.ndarray) -> int:
        number = self.value(name, values.shape, str(values.dtype))
        self.graph.tensors[number].shape = list(values.shape)  # It may have no elements.
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(values.tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        self.graph.tensors[number].buffer = len(self.model.buffers) - 1
        return number

    def whole(self, name: str, values: np.ndarray, scale: float) -> int:
        """A constant of whole numbers, with a scale."""
        number = self.constant(name, values)
        self.graph.tensors[number].quantization = scaled(scale)
        return number

    def operator(
        self, name: str, inputs: Sequence[int], output: int | Sequence[int], options: str = "", **fields: Any
    ) -> None:
        """Adds an operator of one output or several; −1: of none."""
        code = schema.OperatorCodeT()
        number = getattr(schema.BuiltinOperator, name)
        code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), 1
        self.model.operatorCodes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self.model.operatorCodes) - 1
        made = [output] if isinstance(output, int) else list(output)
        operator.inputs, operator.outputs = list(inputs), [number for number in made if number >= 0]
        if options:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            operator.builtinOptions = getattr(schema, f"{options}T")()
            for field, value in fields.items():
                setattr(operator.builtinOptions, field, value)
        self.graph.operators.append(operator)

    def ends(self, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> None:
        self.graph.inputs, self.graph.outputs = list(inputs.values()), list(outputs.values())
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = b"serving_default", 0
        signature.inputs, signature.outputs = (
            [_named(name, number) for name, number in side.items()] for side in (inputs, outputs)
        )
        self.model.signatureDefs = [signature]

    def packed(self) -> bytes:
        builder = flatbuffers.Builder()
        builder.Finish(self.model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def _named(name: str, number: int) -> Any:
    entry = schema.TensorMapT()
    entry.name, entry.tensorIndex = name.encode(), number
    return entry


def elman(batch: int = -1, hidden: int = 4, *, moves: bool = True) -> Writer:
    """One step of an RNN: x [batch, 3] and h [batch, hidden] give y [batch, 2] and h_out. `moves`: h_out is new."""
    draw, writer = np.random.default_rng(0), Writer()

    def weight(name: str, *shape: int) -> int:
        return writer.constant(name, (draw.standard_normal(shape) * 0.5).astype(np.float32))

    x, h = writer.value("serving_default_x:0", [batch, 3]), writer.value("serving_default_h:0", [batch, hidden])
    from_x, from_h, total, new, y = (
        writer.value(name, [batch, size])
        for name, size in (("a", hidden), ("b", hidden), ("sum", hidden), ("Call:0", hidden), ("Call:1", 2))
    )
    dense = "FULLY_CONNECTED", "FullyConnectedOptions"
    writer.operator(dense[0], [x, weight("W", hidden, 3), weight("B", hidden)], from_x, dense[1])
    writer.operator(dense[0], [h, weight("R", hidden, hidden), -1], from_h, dense[1])
    writer.operator("ADD", [from_x, from_h], total, "AddOptions")
    writer.operator("TANH", [total], new)
    writer.operator(dense[0], [new, weight("V", 2, hidden), -1], y, dense[1])
    kept = new
    if not moves:
        kept = writer.value("Call:2", [batch, hidden])
        writer.operator("RESHAPE", [h, writer.constant("shape", np.array([-1, hidden], np.int32))], kept)
    writer.ends({"x": x, "h": h}, {"h_out": kept, "y": y})
    return writer


def counting(shape: Sequence[int] = (-1, 1)) -> Writer:
    """`elman` with a state n of whole numbers, [batch, 1], which counts its steps: y is multiplied by it."""
    writer = elman(-1 if shape else 1)
    h_out, y = writer.graph.outputs
    n, after = (writer.value(name, shape, "int32") for name in ("serving_default_n:0", "Call:3"))
    writer.operator("ADD", [n, writer.constant("one", np.ones((1,) * len(shape), np.int32))], after, "AddOptions")
    share, scaled = writer.value("share", shape), writer.value("Call:4", [-1 if shape else 1, 2])
    writer.operator("CAST", [after], share)
    writer.operator("MUL", [y, share], scaled, "MulOptions")
    x, h = writer.graph.inputs
    writer.ends({"x": x, "h": h, "n": n}, {"h_out": h_out, "n_out": after, "y": scaled})
    return writer


def in_variables(start: float = 0.0, gain: float | None = None) -> Writer:
    """`elman` of one row whose h is a variable, which begins at `start`. `gain`: another, which no call changes."""
    writer = elman(1)
    (x, h), (new, y) = writer.graph.inputs, writer.graph.outputs
    begin = schema.SubGraphT()
    begin.tensors, begin.operators, begin.inputs, begin.outputs = [], [], [], []
    own, writer.graph.operators = writer.graph.operators, []
    writer.model.subgraphs.append(begin)
    writer.operator("CALL_ONCE", [], -1, "CallOnceOptions", initSubgraphIndex=1)
    handle = _variable(writer, "cell/h")
    writer.operator("READ_VARIABLE", [handle], h, "ReadVariableOptions")
    _assign(writer, begin, "cell/h", np.full((1, 4), start, np.float32))
    writer.graph.operators += own
    if gain is not None:
        scale, scaled = writer.value("scale", [1]), writer.value("Call:4", [1, 2])
        writer.operator("READ_VARIABLE", [_variable(writer, "gain")], scale, "ReadVariableOptions")
        _assign(writer, begin, "gain", np.full(1, gain, np.float32))
        writer.operator("MUL", [y, scale], scaled, "MulOptions")
        y = scaled
    writer.operator("ASSIGN_VARIABLE", [handle, new], -1, "AssignVariableOptions")
    writer.ends({"x": x}, {"y": y})
    return writer


def _variable(writer: Writer, name: str) -> int:
    """The handle of a variable."""
    handle = writer.value(name, [])
    writer.graph.tensors[handle].type = schema.TensorType.RESOURCE
    writer.operator("VAR_HANDLE", [], handle, "VarHandleOptions", container=b"", sharedName=name.encode())
    return handle


def _assign(writer: Writer, graph: Any, name: str, value: np.ndarray) -> None:
    """In another graph: gives a variable a value."""
    called, writer.graph = writer.graph, graph
    writer.operator("ASSIGN_VARIABLE", [_variable(writer, name), writer.constant(f"{name}/begin", value)], -1)
    writer.graph = called


def adding(hidden: int = 4) -> Writer:
    """x [batch, hidden] is added to a product of h, without weights of its own. y is its state."""
    writer = Writer()
    x, h, product, total, new = (
        writer.value(name, [-1, hidden])
        for name in ("serving_default_x:0", "serving_default_h:0", "b", "sum", "Call:0")
    )
    weight = writer.constant("R", (np.random.default_rng(0).standard_normal((hidden, hidden)) * 0.5).astype(np.float32))
    writer.operator("FULLY_CONNECTED", [h, weight, -1], product, "FullyConnectedOptions")
    writer.operator("ADD", [x, product], total, "AddOptions")
    writer.operator("TANH", [total], new)
    writer.ends({"x": x, "h": h}, {"h_out": new, "y": new})
    return writer


def giving_its_state(writer: Writer) -> Writer:
    """The model with h_out and y as two names of one tensor, as the converter writes a cell whose y is its state."""
    (signature,) = writer.model.signatureDefs
    state, y = signature.outputs
    y.tensorIndex = state.tensorIndex
    writer.graph.outputs = [state.tensorIndex, state.tensorIndex]
    return writer


def behind_another(writer: Writer) -> Writer:
    """The model with another graph before its own, of the same names and shapes, with a sigmoid where it has tanh."""
    (tanh,) = (
        i for i, code in enumerate(writer.model.operatorCodes) if code.builtinCode == schema.BuiltinOperator.TANH
    )
    other = deepcopy(writer.graph)
    sigmoid = deepcopy(writer.model.operatorCodes[tanh])
    sigmoid.builtinCode = sigmoid.deprecatedBuiltinCode = schema.BuiltinOperator.LOGISTIC
    writer.model.operatorCodes.append(sigmoid)
    for operator in other.operators:
        if operator.opcodeIndex == tanh:
            operator.opcodeIndex = len(writer.model.operatorCodes) - 1
    first = deepcopy(writer.model.signatureDefs[0])
    first.signatureKey, writer.model.signatureDefs[0].subgraphIndex = b"another", 1
    writer.model.subgraphs, writer.model.signatureDefs = [other, writer.graph], [first, *writer.model.signatureDefs]
    return writer


def without_signature(writer: Writer) -> Writer:
    """Its ends have the names of their tensors, as in files of older converters."""
    (signature,) = writer.model.signatureDefs
    for end in (*signature.inputs, *signature.outputs):
        writer.graph.tensors[end.tensorIndex].name = end.name
    writer.model.signatureDefs = []
    return writer


def quantised(writer: Writer, kind: str = "int8") -> Writer:
    """`elman` in int8 or int16, as the converter writes it: each array has a scale and a zero point of its own."""
    of_bias, high = ("int32", 127) if kind != "int16" else ("int64", 32767)
    ranges = {"serving_default_x:0": (4.0, -7), "serving_default_h:0": (1.0, 5), "a": (4.0, 3), "b": (3.0, -2)}
    ranges |= {"sum": (5.0, 1), "Call:0": (127 / 128, 0), "Call:1": (1.5, -9)}
    steps: dict[str, np.ndarray] = {}
    for tensor in writer.graph.tensors:
        name = tensor.name.decode()
        tensor.quantization = found = schema.QuantizationParametersT()
        buffer = writer.model.buffers[tensor.buffer]
        if name not in ranges:
            values = np.frombuffer(buffer.data.tobytes(), np.float32).reshape(tensor.shape)
            # A bias has the scale of the products that it is added to: LiteRT does not read its own.
            step = steps["W"] * (4.0 / high) if name == "B" else np.abs(values).max(-1) / 127
            steps[name] = step
            found.scale, found.zeroPoint = step.astype(np.float32), np.zeros(len(step), np.int64)
            divided = np.rint(values / found.scale.reshape(values.shape[:1] + (1,) * (values.ndim - 1)))
            buffer.data = np.frombuffer(divided.astype("int8" if name != "B" else of_bias).tobytes(), np.uint8)
            tensor.type = getattr(schema.TensorType, "INT8" if name != "B" else of_bias.upper())
        else:
            largest, zero = ranges[name]
            scale = 1 / (high + 1) if name == "Call:0" else largest / high
            found.scale = np.array([scale], np.float32)
            found.zeroPoint = np.array([0 if kind == "int16" else zero], np.int64)
            tensor.type = getattr(schema.TensorType, kind.upper())
    for code in writer.model.operatorCodes:
        code.version = 4 if code.builtinCode == schema.BuiltinOperator.FULLY_CONNECTED else 2
    return writer


def lstm(
    kind: str = "float32", steps: int = 6, hidden: int = 4, cells: int = 0, parts: Collection[str] = (), zero: int = 3
) -> Writer:
    """x [1, steps, 3] through UNIDIRECTIONAL_SEQUENCE_LSTM, as the converter writes a layer of Keras.

    `kind`: float32; weights, with weights in int8 alone; int8, with all that it takes and gives in int8, c in int16.
    `parts`: joint, projection (from `cells` to `hidden`), clips. `zero` is the zero point of h.
    """
    draw, writer, whole = np.random.default_rng(0), Writer(), kind == "int8"
    cells = cells or hidden
    x, y = writer.value("serving_default_x:0", [1, steps, 3]), writer.value("Call:0", [1, steps, hidden])
    h, c, inside = (writer.value(name, [1, size]) for name, size in (("h", hidden), ("c", cells), ("inside", cells)))
    unused = [writer.value(f"unused{gate}", [1]) for gate in range(4)]
    ranges = {x: (4 / 127, -7), c: (2.0**-12, 0), **dict.fromkeys((y, h, inside), (1 / 120, zero))}
    if "projection" in parts:
        ranges |= dict.fromkeys((y, h), (1.5 / 120, zero))
    scales: list[float] = []

    def weight(name: str, *shape: int) -> int:
        values = (draw.standard_normal(shape) * 0.8).astype(np.float32)
        scales.append(float(np.abs(values).max() / 127))
        if kind == "float32":
            return writer.constant(name, values)
        return writer.whole(name, np.rint(values / scales[-1]).astype(np.int8), scales[-1])

    given, around = (
        [weight(f"{name}{gate}", cells, size) for gate in range(4)] for name, size in (("W", 3), ("R", hidden))
    )
    biases = (draw.standard_normal((4, cells)) * 0.5).astype(np.float32)
    steps_of_sums = [scale * ranges[x][0] for scale in scales[:4]]
    bias = [
        writer.whole(f"b{gate}", np.rint(row / step).astype(np.int32), step)
        if whole
        else writer.constant(f"b{gate}", row)
        for gate, (row, step) in enumerate(zip(biases, steps_of_sums, strict=True))
    ]
    for number, (scale, zero) in ranges.items() if whole else ():
        tensor = writer.graph.tensors[number]
        tensor.quantization = scaled(scale, zero)
        tensor.type = schema.TensorType.INT16 if number == c else schema.TensorType.INT8
    for number in (h, c):
        writer.graph.tensors[number].isVariable = True
    projection = [weight("P", hidden, cells) if "projection" in parts else -1, -1]
    if "joint" in parts:
        given[0] = around[0] = bias[0] = -1
    given_to = [x, *given, *around, -1, -1, -1, *bias, *projection, h, c, -1, -1, -1, -1]
    options = {"fusedActivationFunction": schema.ActivationFunctionType.TANH}
    if "clips" in parts:
        options |= {"cellClip": 0.4, "projClip": 0.3}
    writer.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", given_to, y, "UnidirectionalSequenceLSTMOptions", **options)
    writer.model.operatorCodes[-1].version = {"float32": 1, "weights": 2, "int8": 3}[kind]
    writer.graph.operators[-1].intermediates = [*unused, inside] if whole else None
    writer.ends({"x": x}, {"y": y})
    return writer


def scaled(scale: float, zero: int = 0) -> Any:
    found = schema.QuantizationParametersT()
    found.scale, found.zeroPoint = np.array([scale], np.float32), np.array([zero], np.int64)
    return found


def saved(writer: Writer, path: Path) -> Path:
    path.write_bytes(writer.packed())
    return path
