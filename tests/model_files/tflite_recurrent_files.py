"""TFLite files of one operator that has a state of its own, for tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from tflite_files import Writer, scaled, schema

STEPS, INPUT, HIDDEN, CELLS, BESIDE = 5, 3, 4, 6, 2
"""Steps of a sequence; sizes of x and h; of c where a projection makes h of it; and of an auxiliary input."""


class _Of:
    """Weights of a file. `kind`: float32; or weights, with matrices in int8; or uint8, which has the same bytes."""

    def __init__(self, kind: str) -> None:
        self.writer, self._draw, self._kind = Writer(), np.random.default_rng(0), kind
        self._aside: int | None = None
        self.rows = 2 if kind == "float32" else 1
        """LiteRT quantises each row by its own range, and the oracle all rows by one."""

    def matrix(self, *shape: int) -> int:
        values = (self._draw.standard_normal(shape) * 0.7).astype(np.float32)
        if self._kind == "float32":
            return self.writer.constant("W", values)
        scale = float(np.abs(values).max() / 127)
        number = self.writer.whole("W", np.rint(values / scale).astype(np.int8), scale)
        if self._kind == "uint8":
            self.writer.graph.tensors[number].type = schema.TensorType.UINT8
        return number

    def vector(self, size: int) -> int:
        return self.writer.constant("b", (self._draw.standard_normal(size) * 0.5).astype(np.float32))

    def state(self, *shape: int) -> int:
        number = self.writer.value("", shape)
        self.writer.graph.tensors[number].isVariable = True
        return number

    def auxiliary(self, told: str, lead: Sequence[int], rows: Sequence[int]) -> list[int]:
        """An auxiliary input of its own size, and its weights; or of the size of x, without weights."""
        width = BESIDE if told == "with weights" else INPUT
        self._aside = self.writer.value("aside", (*lead, width)) if told else None
        return [self._aside or -1, *(self.matrix(size, BESIDE) if told == "with weights" else -1 for size in rows)]

    def give(
        self, name: str, inputs: Sequence[int], outputs: Sequence[int], options: str, version: int = 1, **fields: object
    ) -> Writer:
        """The file, of the operator alone: x is its first input. An auxiliary input is the other one."""
        self.writer.operator(name, inputs, outputs, options, **fields)
        self.writer.model.operatorCodes[-1].version = version
        given = {"x": inputs[0]}
        if self._aside is not None:
            given["aside"] = self._aside
        self.writer.ends(given, {f"y{place}": number for place, number in enumerate(outputs)})
        return self.writer


def rnn(
    name: str, kind: str = "float32", *, merged: bool = False, time_major: bool = False, auxiliary: str = ""
) -> Writer:
    """An RNN of one step, of a sequence, or of both directions. `merged`: one y of both directions.

    `auxiliary`: with weights, read by both directions; or alone, by the backward one in the place of x.
    """
    of, both = _Of(kind), name.startswith("BI")
    lead = (of.rows,) if name == "RNN" else ((STEPS, of.rows) if time_major else (of.rows, STEPS))
    x = of.writer.value("x", (*lead, INPUT))
    own = [
        [of.matrix(HIDDEN, INPUT), of.matrix(HIDDEN, HIDDEN), of.vector(HIDDEN), of.state(of.rows, HIDDEN)]
        for _ in range(1 + both)
    ]
    widths = [2 * HIDDEN] if merged else [HIDDEN] * (1 + both)
    outputs = [of.writer.value(f"y{place}", (*lead, width)) for place, width in enumerate(widths)]
    fields: dict[str, object] = {"fusedActivationFunction": schema.ActivationFunctionType.TANH}
    if name != "RNN":
        fields["timeMajor"] = time_major
    kinds = {"RNN": "RNNOptions", "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions"}
    if both:
        fields["mergeOutputs"] = merged
    aside = of.auxiliary(auxiliary, lead, [HIDDEN] * 2) if both else []
    inputs = [x, *own[0], *(own[1] if both else []), *aside]
    return of.give(name, inputs, outputs, kinds.get(name, "BidirectionalSequenceRNNOptions"), **fields)


def lstm(name: str, kind: str = "float32", parts: Collection[str] = (), *, time_major: bool = False) -> Writer:
    """LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM or BIDIRECTIONAL_SEQUENCE_LSTM.

    `parts`: joint, peepholes, projection, norms, clips, merged, diagonal, alone or with weights (an auxiliary input).
    """
    of, both = _Of(kind), name.startswith("BI")
    cells = CELLS if "projection" in parts else HIDDEN
    lead = (of.rows,) if name == "LSTM" else ((STEPS, of.rows) if time_major else (of.rows, STEPS))
    x = of.writer.value("x", (*lead, INPUT))

    def direction() -> list[int]:
        def gates(width: int) -> list[int]:
            made = [of.matrix(cells, width) for _ in range(4)]
            return [-1, *made[1:]] if "joint" in parts else made

        peepholes = [of.matrix(cells) for _ in range(3)] if "peepholes" in parts else [-1] * 3
        biases = [of.vector(cells) for _ in range(4)]
        if "joint" in parts:
            peepholes[0] = biases[0] = -1
        projection = [of.matrix(HIDDEN, cells), of.vector(HIDDEN)] if "projection" in parts else [-1, -1]
        of_x = gates(INPUT)
        of_h = [of.matrix(cells) for _ in range(4)] if "diagonal" in parts else gates(HIDDEN)
        return [*of_x, *of_h, *peepholes, *biases, *projection]

    own = [direction() for _ in range(1 + both)]
    states = [of.state(of.rows, size) for _ in range(1 + both) for size in (HIDDEN, cells)]
    norms = [of.vector(cells) if "norms" in parts else -1 for _ in range(4)]
    if "joint" in parts:
        norms[0] = -1
    widths = [2 * HIDDEN] if "merged" in parts else [HIDDEN] * (1 + both)
    outputs = [of.writer.value(f"y{place}", (*lead, width)) for place, width in enumerate(widths)]
    fields: dict[str, object] = {"fusedActivationFunction": schema.ActivationFunctionType.TANH}
    if "clips" in parts:
        fields |= {"cellClip": 0.4, "projClip": 0.3}
    if name != "LSTM":
        fields["timeMajor"] = time_major
    if both:
        fields["mergeOutputs"] = "merged" in parts
        told = next((part for part in parts if part in ("alone", "with weights")), "")
        return of.give(
            name,
            [x, *own[0], *own[1], *states, *of.auxiliary(told, lead, [cells] * 8)],
            outputs,
            "BidirectionalSequenceLSTMOptions",
            3 if kind == "float32" else 2,
            **fields,
        )
    options = "LSTMOptions" if name == "LSTM" else "UnidirectionalSequenceLSTMOptions"
    if "diagonal" in parts:
        fields["diagonalRecurrentTensors"] = True
    return of.give(name, [x, *own[0], *states, *norms], outputs, options, 1 if kind == "float32" else 3, **fields)


def basic_lstm(kind: str = "float32") -> Writer:
    """LSTM by its basic kernel, of two rows: one matrix for all gates. `kind`: float32, or uint8 with c in int16."""
    of = _Of("float32")
    writer, x = of.writer, of.writer.value("x", (2, INPUT))
    h, matrix, bias, c = (
        of.state(2, HIDDEN),
        of.matrix(4 * HIDDEN, INPUT + HIDDEN),
        of.vector(4 * HIDDEN),
        of.state(2, HIDDEN),
    )
    sizes = (HIDDEN, HIDDEN, INPUT + HIDDEN, 4 * HIDDEN)
    outputs = [writer.value(f"y{place}", (2, size)) for place, size in enumerate(sizes)]
    if kind == "uint8":
        draw, kinds = np.random.default_rng(1), schema.TensorType
        whole = draw.integers(0, 256, (4 * HIDDEN, INPUT + HIDDEN)).astype(np.uint8)
        offsets = draw.integers(-9000, 9000, 4 * HIDDEN).astype(np.int32)
        matrix = writer.whole("W", whole.view(np.int8), 0.02)
        bias = writer.whole("b", offsets, 0.02 / 128)
        unit, kept, total = (kinds.UINT8, 1 / 128, 128), (kinds.INT16, 2.0**-11, 0), (kinds.INT16, 2.0**-12, 0)
        named = zip((x, h, c, *outputs), (unit, unit, kept, unit, kept, unit, total), strict=True)
        for number, (dtype, scale, zero) in (*named, (matrix, (kinds.UINT8, 0.02, 117))):
            writer.graph.tensors[number].type = dtype
            writer.graph.tensors[number].quantization = scaled(scale, zero)
    fields = {"fusedActivationFunction": schema.ActivationFunctionType.TANH}
    basic = schema.LSTMKernelType.BASIC
    writer = of.give("LSTM", [x, h, matrix, bias, c], outputs, "LSTMOptions", 2, kernelType=basic, **fields)
    writer.ends({"x": x}, {"y0": outputs[0], "y1": outputs[1]})
    return writer


def svdf(kind: str = "float32", rank: int = 2, memory: int = 3) -> Writer:
    """SVDF of four units. `kind`: float32, weights, or int8, with all that it takes and gives in int8."""
    of, filters = _Of("weights" if kind == "int8" else kind), HIDDEN * rank
    writer, batch = of.writer, of.rows
    x, y = writer.value("x", (batch, INPUT)), writer.value("y0", (batch, HIDDEN))
    feature, time, bias = of.matrix(filters, INPUT), of.matrix(filters, memory), of.vector(HIDDEN)
    state = of.state(batch, filters * memory)
    if kind == "int8":
        draw, tensors, kinds = np.random.default_rng(1), writer.graph.tensors, schema.TensorType
        for number, scale, zero, dtype in (
            (x, 4 / 127, -7, kinds.INT8),
            (y, 6 / 255, -128, kinds.INT8),
            (state, 6 / 32767, 0, kinds.INT16),
        ):
            tensors[number].type, tensors[number].quantization = dtype, scaled(scale, zero)
        values = np.rint(draw.standard_normal((filters, memory)) * 12000).clip(-32767, 32767).astype(np.int16)
        time = writer.whole("T", values, 1 / 32767)
        offsets = np.rint(draw.standard_normal(HIDDEN) * 32767 * 32767 / 12).astype(np.int32)
        bias = writer.whole("b", offsets, 6 / 32767 / 32767)
    # In int8 LiteRT takes RELU alone, and computes none: its result ends at the zero point.
    kinds = schema.ActivationFunctionType
    fields = {"rank": rank, "fusedActivationFunction": kinds.RELU if kind == "int8" else kinds.NONE}
    version = {"float32": 1, "weights": 2, "uint8": 2, "int8": 3}[kind]
    return of.give("SVDF", [x, feature, time, bias, state], [y], "SVDFOptions", version, **fields)
