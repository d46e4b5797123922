"""The specification of a recurrent network, and the names and shapes that follow from it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Cell = Literal["lstm", "gru", "rnn", "counter"]
Direction = Literal["forward", "reverse", "bidirectional"]

GATES: dict[Cell, int] = {"lstm": 4, "gru": 3, "rnn": 1, "counter": 0}
"""Rows of each weight matrix, in units of `hidden`. PyTorch's order: lstm i f g o; gru r z n."""

Size = Annotated[int, Field(ge=1, le=65_536)]


class Model(BaseModel):
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

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell: Cell
    input: Size
    hidden: Size
    layers: Annotated[int, Field(ge=1, le=64)] = 1
    projection: Annotated[int, Field(ge=0, le=65_536)] = 0
    direction: Direction = "forward"
    bias: bool = True
    reset_after: bool = True
    activation: Literal["tanh", "relu"] = "tanh"
    recurrent_activation: Literal["sigmoid", "hard_sigmoid"] = "sigmoid"
    clip: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    cell_clip: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    gain: Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)] = 1.0

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
            raise ValueError("a counter has one layer and runs forward")
        if self.gain != 1:
            raise ValueError("gain scales weights, and a counter has none; leave it out")

    @property
    def other_activations(self) -> bool:
        """Whether an LSTM or GRU has other activations than sigmoid and tanh. Few libraries' operators have them."""
        chosen = (self.activation, self.recurrent_activation)
        return self.cell in ("lstm", "gru") and chosen != ("tanh", "sigmoid")

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @property
    def output(self) -> int:
        """Size of h, and of y in one direction: the projection where there is one."""
        return self.projection or self.hidden

    @property
    def width(self) -> int:
        """Size of y: both directions side by side."""
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
