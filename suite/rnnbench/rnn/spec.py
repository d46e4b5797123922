"""The specification of a stack of recurrent cells, and the names and shapes that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rnnbench.rnn.network import LayerSpec, Network, Size, WeightSpec, X, x_towards

if TYPE_CHECKING:
    import numpy as np

    from rnnbench.rnn.arithmetic import Arithmetic
    from rnnbench.rnn.primitives import LayerBody, Primitives, V
    from rnnbench.rnn.reference import Trajectory
    from rnnbench.rnn.weights import Weights


Cell = Literal["lstm", "gru", "rnn", "counter"]
Direction = Literal["forward", "reverse", "bidirectional"]

GATES: dict[Cell, int] = {"lstm": 4, "gru": 3, "rnn": 1, "counter": 0}
"""Rows of each weight matrix, in units of `hidden`. PyTorch's order: lstm i f g o; gru r z n."""

PYTORCH_NAMES = {
    "w_ih": "weight_ih",
    "w_hh": "weight_hh",
    "b_ih": "bias_ih",
    "b_hh": "bias_hh",
    "w_hr": "weight_hr",
}
"""PyTorch's names of the fields of `weights.Layer`, in the order in which they are drawn."""
_GATING = {"lstm": 9, "gru": 8, "rnn": 1, "counter": 0}
"""Operations on each unit of a step, without the products: activations and the arithmetic between them. An addition to
a product is part of the product. A GRU that resets before its product has one less."""
_KEEPING_GATE = {"lstm": 1, "gru": 1}
"""Index of the gate that decides how much of the state stays: an LSTM's forget gate, a GRU's update gate."""


class Model(Network):
    """A stack of recurrent layers, with what PyTorch, ONNX and TFLite together can specify.

    The equations are those of `torch.nn.LSTM`, `torch.nn.GRU` and `torch.nn.RNN`. `reset_after=False` is ONNX's
    `linear_before_reset=0`. `projection` is LSTMP (Sak et al., 2014; torch's `proj_size`). `clip` is ONNX's: it bounds
    the inputs of activations. `cell_clip` is TFLite's: it bounds the new cell state. `activation` and
    `recurrent_activation` are Keras' names. The first, tanh or relu, is for an LSTM's candidate and output, a GRU's
    candidate, and an RNN. The second is for gates: sigmoid, or the HardSigmoid of ONNX and early Keras,
    max(0, min(1, 0.2·x + 0.5)). `gain` scales the weights that are drawn: above about 2 an RNN is chaotic.

    A `counter` has no weights: h' = h + x, y = h'. Its inputs are small integers, so every backend must be exact. A
    step that is lost, repeated or taken from the wrong chunk changes the result by a whole number.
    """

    network: ClassVar[str] = "stack"
    cell: Cell = Field(description="The recurrent cell.")
    input: Size = Field(description="Size of x at each step.")
    hidden: Size = Field(description="Units of each layer.")
    layers: Annotated[int, Field(ge=1, le=64)] = Field(default=1, description="Layers, one on top of the other.")
    projection: Annotated[int, Field(ge=0, le=65_536)] = Field(
        default=0, description="Size an LSTM's h is projected to (LSTMP); 0 for none."
    )
    direction: Direction = Field(
        default="forward", description="Which way time runs; `reverse` and `bidirectional` need state none."
    )
    bias: bool = Field(default=True, description="Whether there are bias vectors.")
    reset_after: bool = Field(
        default=True,
        description="GRU: whether the reset gate scales the recurrent product (true) or the state before it (false).",
    )
    activation: Literal["tanh", "relu"] = Field(
        default="tanh",
        description="Activation of the cell: of an LSTM's or GRU's candidate, of an LSTM's output, of an `rnn`.",
    )
    recurrent_activation: Literal["sigmoid", "hard_sigmoid"] = Field(
        default="sigmoid",
        description="Activation of an LSTM's or GRU's gates; `hard_sigmoid` is max(0, min(1, 0.2·x + 0.5)).",
    )
    clip: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Bound on the inputs of activations, as ONNX means it; null for none."
    )
    cell_clip: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Bound on an LSTM's cell state, as TFLite means it; null for none."
    )
    gain: Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)] = Field(
        default=1.0, description="Factor on the weights, uniform in ±gain/√hidden; past about 2 an RNN is chaotic."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.projection and self.cell != "lstm":
            raise ValueError(f"projection is LSTMP's: a {self.cell} has none; leave it out")
        if self.projection >= self.hidden:
            raise ValueError(f"projection {self.projection} must be smaller than hidden {self.hidden}")
        if not self.reset_after and self.cell != "gru":
            raise ValueError(f"reset_after belongs to a gru, and this is a {self.cell}; leave it out")
        if self.activation != "tanh" and self.cell == "counter":
            raise ValueError("a counter has no activation; leave it out")
        if self.recurrent_activation != "sigmoid" and self.cell not in ("lstm", "gru"):
            raise ValueError(
                f"recurrent_activation is that of the gates of an lstm or gru, and this is a {self.cell}; leave it out"
            )
        if self.cell_clip is not None and self.cell != "lstm":
            raise ValueError(f"cell_clip bounds an lstm's cell state, and this is a {self.cell}; leave it out")
        if self.clip is not None and self.cell == "counter":
            raise ValueError("clip bounds the inputs of activations, and a counter has none; leave it out")
        if self.cell == "counter":
            self._check_counter()
        return self

    def _check_counter(self) -> None:
        if self.input != self.hidden:
            raise ValueError(f"a counter's input and hidden are one size, not {self.input} and {self.hidden}")
        if self.layers != 1 or self.direction != "forward":
            raise ValueError("a counter has one layer and runs forward; leave layers and direction out")
        if self.gain != 1:
            raise ValueError("gain scales weights, and a counter has none; leave it out")

    @property
    def params(self) -> dict[str, object]:
        return self.model_dump(exclude_defaults=True)

    @property
    def other_activations(self) -> str:
        """The activations of an LSTM or GRU that are not sigmoid and tanh, in words. Empty for all others."""
        standard = (self.activation, self.recurrent_activation) == ("tanh", "sigmoid")
        is_other = self.cell in ("lstm", "gru") and not standard
        return f"{self.cell} with {self.recurrent_activation} and {self.activation}" if is_other else ""

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @property
    def output(self) -> int:
        """Size of h, and of y in one direction: the projection's if there is one."""
        return self.projection or self.hidden

    @property
    def width(self) -> int:
        """Size of y, which has both directions side by side."""
        return self.directions * self.output

    def layer_input(self, layer: int) -> int:
        return self.input if layer == 0 else self.width

    def state_shapes(self, batch: int) -> dict[str, tuple[int, int, int]]:
        """Shape of each state array, [layers·directions, batch, size], in PyTorch's order of layers."""
        rows = self.layers * self.directions
        shapes = {"h": (rows, batch, self.output)}
        if self.cell == "lstm":
            shapes["c"] = (rows, batch, self.hidden)
        return shapes

    @property
    def label(self) -> str:
        return f"h{self.hidden}"

    @property
    def can_stream(self) -> bool:
        return self.direction == "forward"

    @property
    def has_int8(self) -> bool:
        return self.cell != "counter"

    @property
    def is_exact(self) -> bool:
        return self.cell == "counter"

    @property
    def graph(self) -> tuple[LayerSpec, ...]:
        """At index `layer·directions + direction`. A layer reads all directions of the one below."""
        return tuple(self._layer(row) for row in range(self.layers * self.directions))

    @property
    def outputs(self) -> tuple[int, ...]:
        return self._rows(self.layers - 1)

    def body(self, ops: Primitives[V], weights: Weights, index: int) -> LayerBody[V]:
        from rnnbench.rnn.cells import cell_body

        return cell_body(ops, self, weights.row(index))

    def weight_specs(self) -> Iterator[WeightSpec]:
        """Each uniform in ±gain/√hidden. With gain 1, this is how torch initialises RNNs."""
        if self.cell == "counter":
            return
        bound, rows = self.gain / math.sqrt(self.hidden), GATES[self.cell] * self.hidden
        for row in range(self.layers * self.directions):
            layer, backward = divmod(row, self.directions)
            shapes: dict[str, tuple[int, ...]] = {
                "w_ih": (rows, self.layer_input(layer)),
                "w_hh": (rows, self.output),
                **({"b_ih": (rows,), "b_hh": (rows,)} if self.bias else {}),
                **({"w_hr": (self.projection, self.hidden)} if self.projection else {}),
            }
            for field_name, shape in shapes.items():
                name = f"{PYTORCH_NAMES[field_name]}_l{layer}{'_reverse' if backward else ''}"
                yield WeightSpec(name, shape, bound)

    def as_weights(self, arrays: Mapping[str, np.ndarray]) -> Weights:
        from rnnbench.rnn.weights import Weights, layers_of

        return Weights(layers_of(self, arrays))

    def run(
        self, arithmetic: Arithmetic, weights: Weights, x: np.ndarray, state: Mapping[str, np.ndarray]
    ) -> Trajectory:
        from rnnbench.rnn.stack_reference import run_stack

        return run_stack(arithmetic, self, weights, x, state)

    def run_lengths(
        self,
        arithmetic: Arithmetic,
        weights: Weights,
        x: np.ndarray,
        state: Mapping[str, np.ndarray],
        lengths: np.ndarray,
    ) -> Trajectory:
        from rnnbench.rnn.stack_reference import run_stack

        return run_stack(arithmetic, self, weights, x, state, lengths)

    def smaller(self) -> Iterator[Model]:
        if self.layers > 1:
            yield self.model_copy(update={"layers": self.layers // 2})
        if self.hidden > 1 and not self.projection:
            half = self.hidden // 2
            yield self.model_copy(update={"hidden": half, **({"input": half} if self.cell == "counter" else {})})
        if self.input > 1 and self.cell != "counter":
            yield self.model_copy(update={"input": self.input // 2})

    def pinning_x(self, weights: Weights, batch: int, preactivation: float) -> np.ndarray | None:
        if self.cell not in _KEEPING_GATE:
            return None
        import numpy as np

        units = _KEEPING_GATE[self.cell] * self.hidden + np.arange(batch) % self.hidden
        return x_towards(weights.layers[0].w_ih[units], preactivation)

    def _rows(self, layer: int) -> tuple[int, ...]:
        return tuple(layer * self.directions + direction for direction in range(self.directions))

    def _layer(self, row: int) -> LayerSpec:
        layer, direction = divmod(row, self.directions)
        rows, width = GATES[self.cell] * self.hidden, self.layer_input(layer)
        return LayerSpec(
            sources=(X,) if layer == 0 else self._rows(layer - 1),
            projected=rows or self.hidden,
            width=self.output,
            states=tuple((name, row) for name in self.state_shapes(1)),
            backward=direction == 1 or self.direction == "reverse",
            hoistable_weights=rows * (width + self.bias),
            step_weights=self._step_weights,
            operations=self._step_operations(width),
        )

    @property
    def _step_weights(self) -> int:
        """Elements of the weights that a step reads. They include a bias inside the reset: no projection can add it."""
        rows = GATES[self.cell] * self.hidden
        after_reset = self.hidden if self.cell == "gru" and self.reset_after and self.bias else 0
        return rows * self.output + self.projection * self.hidden + after_reset

    def _step_operations(self, width: int) -> int:
        hidden, rows = self.hidden, GATES[self.cell] * self.hidden
        if self.cell == "counter":
            return hidden
        products = 2 * rows * (width + self.output) + 2 * self.projection * hidden
        gating = _GATING[self.cell] - (self.cell == "gru" and not self.reset_after)
        clipping = (rows if self.clip is not None else 0) + (hidden if self.cell_clip is not None else 0)
        return products + hidden * gating + clipping
