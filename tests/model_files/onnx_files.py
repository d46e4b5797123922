"""Model files for tests: graphs built by hand with onnx.helper, and networks exported by PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSET, IR = 17, 8
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
Array = tuple[str, int, Sequence[int | str | None] | None]


def arrays(*specs: tuple[str, Sequence[int | str | None] | None] | Array) -> list[Any]:
    """Value infos of (name, shape) or (name, type, shape)."""
    whole = [spec if len(spec) == 3 else (spec[0], FLOAT, spec[1]) for spec in specs]
    return [helper.make_tensor_value_info(*spec) for spec in whole]


def weight(name: str, values: np.ndarray) -> Any:
    return numpy_helper.from_array(np.ascontiguousarray(values), name)


def model(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], weights: Sequence[Any] = (), **more: Any
):
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), list(weights))
    opset = more.pop("opset", OPSET)
    opsets = [helper.make_opsetid("", opset), *more.pop("opsets", ())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=more.pop("ir", IR), **more)


def saved(proto: Any, path: Path) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def recurrent_weights(operator: str, inputs: int, hidden: int, directions: int = 1, seed: int = 0) -> list[Any]:
    """W, R and B of an operator."""
    draw = np.random.default_rng(seed)
    rows = GATES[operator] * hidden
    shapes = {"W": (directions, rows, inputs), "R": (directions, rows, hidden), "B": (directions, 2 * rows)}
    return [weight(name, (draw.standard_normal(shape) * 0.5).astype(np.float32)) for name, shape in shapes.items()]


def with_layout(operator: str, layout: int) -> Any:
    """x and h0 through one operator, without c0: y and hn. With layout 1, rows come before steps in all of them."""
    given, rows = ["x", "W", "R", "B", "", "h0"], ("B", 1, 4) if layout else (1, "B", 4)
    lead = ("B", "T") if layout else ("T", "B")
    nodes = [
        helper.make_node(operator, given, ["Y", "hn"], hidden_size=4, layout=layout),
        helper.make_node("Squeeze", ["Y", "axis"], ["y"]),
    ]
    weights = [*recurrent_weights(operator, 3, 4), weight("axis", np.array([2 if layout else 1]))]
    return model(nodes, arrays(("x", (*lead, 3)), ("h0", rows)), arrays(("y", (*lead, 4)), ("hn", rows)), weights)


def recurrent(operator: str = "LSTM", inputs: int = 3, hidden: int = 4, **attributes: Any) -> Any:
    """x, h0 (and c0) through one operator: y [T, B, hidden], hn (and cn)."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    states = ("h", "c") if operator == "LSTM" else ("h",)
    ends = [f"{state}n" for state in states]
    nodes = [
        helper.make_node(
            operator,
            ["x", "W", "R", "B", "", *(f"{s}0" for s in states)],
            ["Y", *ends],
            "rnn",
            hidden_size=hidden,
            **attributes,
        ),
        helper.make_node("Transpose", ["Y"], ["moved"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["moved", "shape"], ["y"]),
    ]
    shape = (directions, "B", hidden)
    return model(
        nodes,
        arrays(("x", ("T", "B", inputs)), *((f"{state}0", shape) for state in states)),
        arrays(("y", ("T", "B", directions * hidden)), *((end, shape) for end in ends)),
        [*recurrent_weights(operator, inputs, hidden, directions), weight("shape", np.array([0, 0, -1]))],
    )


def exported(
    network: Any, given: Sequence[Any], path: Path, inputs: list[str], outputs: list[str], **more: Any
) -> Path:
    """The file that PyTorch's exporter makes of a module."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(), tuple(given), str(path), dynamo=False, input_names=inputs, output_names=outputs, **more
        )
    onnx.checker.check_model(str(path))
    return path


def odd(batch: int | str = "B") -> Any:
    """Two inputs, two outputs, a constant, and a state whose axes are not those of a stack of cells.

    One call is one step: a [B, 1, 3], x [B, 5] and the state s [B, 2, 4] give y [B, 1, 8], total [B, 1] and next_s.
    """
    draw = np.random.default_rng(1)
    weights = [
        weight("W", (draw.standard_normal((8, 8)) * 0.4).astype(np.float32)),
        weight("flat", np.array([0, 1, 8], np.int64)),
        weight("square", np.array([0, 2, 4], np.int64)),
        weight("middle", np.array([1], np.int64)),
    ]
    nodes = [
        helper.make_node("Unsqueeze", ["x", "middle"], ["wide"]),
        helper.make_node("Concat", ["a", "wide"], ["both"], axis=2),
        helper.make_node("MatMul", ["both", "W"], ["product"]),
        helper.make_node("Reshape", ["s", "flat"], ["line"]),
        helper.make_node("Mul", ["line", "gain"], ["kept"]),
        helper.make_node("Add", ["product", "kept"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["y"]),
        helper.make_node("Reshape", ["y", "square"], ["next_s"]),
        helper.make_node("ReduceSum", ["y", "last"], ["total"], keepdims=0),
    ]
    weights.append(weight("last", np.array([2], np.int64)))
    inputs = arrays(("a", [batch, 1, 3]), ("x", [batch, 5]), ("s", [batch, 2, 4]), ("gain", []))
    outputs = arrays(("y", [batch, 1, 8]), ("total", [batch, 1]), ("next_s", [batch, 2, 4]))
    return model(nodes, inputs, outputs, weights)


def embedding() -> Any:
    """One step: tokens [B], whole numbers below 10, and h [B, 4] give y [B, 4] and next_h."""
    table = weight("table", np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32))
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["row"]),
        helper.make_node("Add", ["row", "h"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next_h"]),
        helper.make_node("Identity", ["next_h"], ["y"]),
    ]
    inputs = arrays(("tokens", INT64, ["B"]), ("h", ["B", 4]))
    return model(nodes, inputs, arrays(("y", ["B", 4]), ("next_h", ["B", 4])), [table])


def one_row() -> Any:
    """One step of h' = tanh(x + h), whose rows are open, and whose Reshape has the one row of the export.

    x [B, 4] and h [B, 4] give y [1, rows, 4] and hn.
    """
    nodes = [
        helper.make_node("Add", ["x", "h"], ["sum"]),
        helper.make_node("Reshape", ["sum", "one"], ["flat"]),
        helper.make_node("Tanh", ["flat"], ["hn"]),
        helper.make_node("Unsqueeze", ["hn", "zero"], ["y"]),
    ]
    inputs, outputs = arrays(("x", ("B", 4)), ("h", ("B", 4))), arrays(("y", (1, "rows", 4)), ("hn", ("B", 4)))
    return model(nodes, inputs, outputs, [weight("one", np.array([1, 4])), weight("zero", np.array([0]))])


def cell(x: str, states: Sequence[str], after: Sequence[str], y: str = "y", **more: Any) -> Any:
    """Cells by hand, one on the other: x [1, 3] and each state [1, 4] give y [1, 2] and the next states.

    Arrays have the names that are given.
    """
    draw = np.random.default_rng(3)
    sizes = {"W0": (3, 4), "out": (4, 2), **{f"W{i}": (4, 4) for i in range(1, len(states))}}
    sizes |= {f"R{i}": (4, 4) for i in range(len(states))}
    weights = [weight(f"~{name}", (draw.standard_normal(s) * 0.4).astype(np.float32)) for name, s in sizes.items()]
    nodes, below = [], x
    for i, (before, following) in enumerate(zip(states, after, strict=True)):
        nodes += [
            helper.make_node("MatMul", [below, f"~W{i}"], [f"~a{i}"]),
            helper.make_node("MatMul", [before, f"~R{i}"], [f"~b{i}"]),
            helper.make_node("Add", [f"~a{i}", f"~b{i}"], [f"~sum{i}"]),
            helper.make_node("Tanh", [f"~sum{i}"], [following]),
        ]
        below = following
    nodes.append(helper.make_node("MatMul", [below, "~out"], [y]))
    inputs = arrays((x, (1, 3)), *((name, (1, 4)) for name in states))
    return model(nodes, inputs, arrays((y, (1, 2)), *((name, (1, 4)) for name in after)), weights, **more)


def reset(shape: Sequence[int] = (1, 1)) -> Any:
    """A cell whose state h is zero where `reset`, true or false, says so, and that gives the place of its largest."""
    proto = cell("x", ["h"], ["next_h"])
    (node,) = (node for node in proto.graph.node if "h" in node.input)
    node.input[list(node.input).index("h")] = "kept"
    zero = weight("zero", np.zeros(1, np.float32))
    proto.graph.node.insert(0, helper.make_node("Where", ["reset", "zero", "h"], ["kept"]))
    proto.graph.node.append(helper.make_node("ArgMax", ["next_h"], ["largest"], axis=1))
    proto.graph.initializer.append(zero)
    proto.graph.input.extend(arrays(("reset", TensorProto.BOOL, list(shape))))
    proto.graph.output.extend(arrays(("largest", INT64, [1, 1])))
    return proto


def typed(proto: Any, kind: int) -> Any:
    """The file with its floats, those of weights, inputs and outputs, in another type."""
    floats = (FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
    made, dtype = onnx.ModelProto(), helper.tensor_dtype_to_np_dtype(kind)
    made.CopyFrom(proto)
    for tensor in made.graph.initializer:
        if tensor.data_type in floats:
            tensor.CopyFrom(weight(tensor.name, numpy_helper.to_array(tensor).astype(dtype)))
    for value in (*made.graph.input, *made.graph.output):
        if value.type.tensor_type.elem_type in floats:
            value.type.tensor_type.elem_type = kind
    return made


def kept_in_float32(proto: Any) -> Any:
    """A file in float16 with inputs and outputs of float32, as converters with `keep_io_types` make it."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    nodes = [*made.graph.node]
    ends = [value.name for value in (*made.graph.input, *made.graph.output)]
    for node in nodes:
        for names in (node.input, node.output):
            names[:] = [f"{name}/16" if name in ends else name for name in names]
    before = [helper.make_node("Cast", [v.name], [f"{v.name}/16"], to=TensorProto.FLOAT16) for v in made.graph.input]
    after = [helper.make_node("Cast", [f"{v.name}/16"], [v.name], to=FLOAT) for v in made.graph.output]
    del made.graph.node[:]
    made.graph.node.extend([*before, *nodes, *after])
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = FLOAT
    return made


def ring_buffer(kind: int) -> Any:
    """One step: x [B, 3], the last four sums in buffer [B, 4], and step [B] of type `kind`: where the next one goes."""
    weights = [
        weight("W", (np.random.default_rng(0).standard_normal((3, 2)) * 0.5).astype(np.float32)),
        weight("one", np.array([1], np.int64)),
        weight("four", np.array([4], np.int64)),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["product"]),
        helper.make_node("ReduceSum", ["product", "one"], ["new"], keepdims=1),
        helper.make_node("Cast", ["step"], ["position"], to=INT64),
        helper.make_node("Unsqueeze", ["position", "one"], ["slot"]),
        helper.make_node("ScatterElements", ["buffer", "slot", "new"], ["next_buffer"], axis=1),
        helper.make_node("ReduceSum", ["next_buffer", "one"], ["total"], keepdims=1),
        helper.make_node("Tanh", ["total"], ["bounded"]),
        helper.make_node("Add", ["product", "bounded"], ["y"]),
        helper.make_node("Add", ["position", "one"], ["later"]),
        helper.make_node("Mod", ["later", "four"], ["around"]),
        helper.make_node("Cast", ["around"], ["next_step"], to=kind),
    ]
    inputs = arrays(("x", ("B", 3)), ("buffer", ("B", 4)), ("step", kind, ("B",)))
    outputs = arrays(("y", ("B", 2)), ("next_buffer", ("B", 4)), ("next_step", kind, ("B",)))
    return model(nodes, inputs, outputs, weights)


def wide_state() -> Any:
    """A cell in float32 between casts: x and y are float16, and the state stays float32."""
    made = onnx.ModelProto()
    made.CopyFrom(cell("wide_x", ["h"], ["next_h"], "wide_y"))
    made.graph.node.insert(0, helper.make_node("Cast", ["x"], ["wide_x"], to=FLOAT))
    made.graph.node.append(helper.make_node("Cast", ["wide_y"], ["y"], to=TensorProto.FLOAT16))
    for value, name in ((made.graph.input[0], "x"), (made.graph.output[0], "y")):
        value.name, value.type.tensor_type.elem_type = name, TensorProto.FLOAT16
    return made


def quantised_cell(kind: str = "uint8", per_channel: bool = False, largest_byte: int = 63) -> Any:
    """`h' = tanh(xW + hR)`, y = h'V, as onnxruntime.quantization.quantize_static (QDQ) writes such a network.

    The weights have 7 bits, as with reduce_range: a sum of two products with 8 saturates on a processor without VNNI.
    """
    draw, ends = np.random.default_rng(0), np.iinfo(kind)
    weights, nodes = [], list[Any]()

    def constants(name: str, scale: Any, zero: Any, dtype: str) -> list[str]:
        for part, value in (("scale", np.asarray(scale, np.float32)), ("zero", np.asarray(zero, dtype))):
            weights.append(numpy_helper.from_array(value, f"{name}_{part}"))
        return [f"{name}_scale", f"{name}_zero"]

    def matrix(name: str, rows: int, columns: int) -> str:
        values = draw.standard_normal((rows, columns)) * 0.5
        scale = np.abs(values).max(axis=0 if per_channel else None) / largest_byte
        weights.append(weight(f"{name}_q", np.rint(values / scale).astype(np.int8)))
        own = constants(name, scale, np.zeros_like(scale), "int8")
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *own], [name], axis=1))
        return name

    def ranged(name: str, largest: float, result: str = "") -> str:
        own = constants(name, largest / 127, (int(ends.max) + int(ends.min) + 1) // 2, kind)
        nodes.append(helper.make_node("QuantizeLinear", [name, *own], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *own], [result or f"{name}_d"]))
        return result or f"{name}_d"

    def product(one: str, matrix: str, result: str) -> str:
        nodes.append(helper.make_node("MatMul", [one, matrix], [result]))
        return result

    xw = ranged(product(ranged("x", 3), matrix("W", 3, 4), "xw"), 4)
    hr = ranged(product(ranged("h", 1), matrix("R", 4, 4), "hr"), 4)
    nodes.append(helper.make_node("Add", [xw, hr], ["sum"]))
    nodes.append(helper.make_node("Tanh", [ranged("sum", 4)], ["tanh"]))
    after = ranged("tanh", 1, "h_out")
    ranged(product(after, matrix("V", 4, 2), "yv"), 3, "y")
    return model(nodes, arrays(("x", (1, 3)), ("h", (1, 4))), arrays(("y", (1, 2)), ("h_out", (1, 4))), weights)
