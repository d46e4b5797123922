"""A request as layers of Keras: LSTM, GRU and SimpleRNN as users make them, with the suite's weights.

Keras orders the gates of an LSTM i f g o, as PyTorch does, and those of a GRU z r n. Its kernels are transposed. It has
one bias, except for a GRU with `reset_after`, which has two, stacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.backends.shared import CUDA
from rnnbench.backends.tensorflow.lowered import TAG
from rnnbench.backends.tensorflow.traced_function import lengths_specs, state_specs, traced, x_spec
from rnnbench.rnn import FUSED, Layer, Model


def library(request: Request, jit: bool) -> Any:
    """The module, with `step` as in `traced_function.py`. A stateful module has its state in the layers' variables."""
    stack = _Stack(request)
    module = tf.Module()
    module.weights = [weight.value for layer in stack.layers_by_row for weight in layer.weights]
    module.state = [state.value for layer in stack.layers_by_row if layer.stateful for state in layer.states]
    signature = [x_spec(request), *lengths_specs(request)]
    if request.strategy.state == "stitched":
        signature += state_specs(request)
    return traced(module, stack, signature, jit)


class _Stack:
    """The layers, and a call over all of them. x and y have time first, as everywhere in the suite."""

    def __init__(self, request: Request) -> None:
        model = request.stack
        self._size = len(model.state_shapes(request.batch))
        self._stitched = request.strategy.state == "stitched"
        self._ragged = request.ragged
        self.layers_by_row: list[Any] = []
        self._layers = []
        for index in range(model.layers):
            shape = (request.batch, request.strategy.chunk, model.layer_input(index))
            self._layers.append(self._layer(request, index, shape))

    def __call__(self, x: Any, *rest: Any) -> tuple[Any, ...]:
        """`rest` is the state, or the lengths of the rows where the request is ragged."""
        y = tf.transpose(x, (1, 0, 2))
        if self._ragged:
            return (tf.transpose(self._masked(y, *rest), (1, 0, 2)),)
        return self._carried(y, rest)

    def _masked(self, y: Any, lengths: Any) -> Any:
        """From zeros, each row up to its length."""
        mask = tf.sequence_mask(lengths, y.shape[1])
        for layer in self._layers:
            y = layer(y, mask=mask)
        return y

    def _carried(self, y: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        final: list[Any] = []
        for index, layer in enumerate(self._layers):
            if self._stitched:
                y, *last = layer(y, initial_state=list(state[index * self._size : (index + 1) * self._size]))
                final += last
            else:
                y = layer(y)
        return (tf.transpose(y, (1, 0, 2)), *final)

    def _layer(self, request: Request, index: int, shape: tuple[int, int, int]) -> Any:
        model, weights = request.stack, request.weights
        if model.direction == "bidirectional":
            both = [_layer_in_one_direction(request, index, direction) for direction in ("forward", "reverse")]
            layer = keras.layers.Bidirectional(both[0], backward_layer=both[1])
            parts = [layer.forward_layer, layer.backward_layer]
        else:
            layer = _layer_in_one_direction(request, index, model.direction)
            parts = [layer]
        layer.build(shape)
        for part in parts:
            _set_weights(part, model, weights.row(len(self.layers_by_row)))
            _name_copies(part.cell, len(self.layers_by_row))
            self.layers_by_row.append(part)
        return _Backwards(layer) if model.direction == "reverse" else layer


class _Backwards:
    """Puts the outputs of a backward layer in the order of time: the layer returns them in the order of computation."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def __call__(self, x: Any, **options: Any) -> Any:
        return tf.reverse(self._layer(x, **options), [1])


def _layer_in_one_direction(request: Request, index: int, direction: str) -> Any:
    """A layer that is not built yet. Its names, which are in the graph, do not depend on layers made before."""
    model, strategy = request.stack, request.strategy
    options: dict[str, Any] = {
        "units": model.hidden,
        "use_bias": model.bias,
        "return_sequences": True,
        "return_state": strategy.state == "stitched",
        "stateful": strategy.state == "stateful",
        "unroll": strategy.time == "unrolled",
        "go_backwards": direction == "reverse",
        "activation": model.activation,
        "zero_output_for_mask": request.ragged,
        "dtype": request.precision.compute,
        "name": f"layer_{index}_{direction}",
    }
    if model.cell != "rnn":
        options["use_cudnn"] = _use_cudnn(request)
        options["recurrent_activation"] = "sigmoid" if model.recurrent_activation == "sigmoid" else HARD_SIGMOID
    if model.cell == "lstm":
        layer = keras.layers.LSTM(**options)
    elif model.cell == "gru":
        layer = keras.layers.GRU(reset_after=model.reset_after, **options)
    else:
        layer = keras.layers.SimpleRNN(**options)
    layer.cell.name = "cell"
    return layer


def _use_cudnn(request: Request) -> bool | str:
    """On CUDA a fused layer is cuDNN's, or no layer. On the processor Keras decides, which has a loop there."""
    if request.strategy.time != FUSED:
        return False
    return True if request.device == CUDA else "auto"


def _hard_sigmoid(x: Any) -> Any:
    """The hard sigmoid of ONNX and of early Keras, with a slope of 0.2. That of Keras 3 has a slope of 1/6."""
    return keras.ops.clip(0.2 * x + 0.5, 0.0, 1.0)


# Bidirectional makes its layers again from their descriptions, which name this function.
HARD_SIGMOID: Any = keras.saving.register_keras_serializable("rnnbench")(_hard_sigmoid)


def _set_weights(layer: Any, model: Model, weights: Layer) -> None:
    layer.set_weights(list(_arrays(model, weights)))


def _arrays(model: Model, weights: Layer) -> Iterator[np.ndarray]:
    """Kernel, recurrent kernel and bias in Keras' layout."""
    yield _ordered(model, weights.w_ih).T
    yield _ordered(model, weights.w_hh).T
    if weights.b_ih is not None and weights.b_hh is not None:
        b_ih, b_hh = _ordered(model, weights.b_ih), _ordered(model, weights.b_hh)
        stacked = model.cell == "gru" and model.reset_after
        yield np.stack([b_ih, b_hh]) if stacked else b_ih + b_hh


def _ordered(model: Model, array: np.ndarray) -> np.ndarray:
    """The gates in Keras' order: those of a GRU from r z n to z r n."""
    if model.cell != "gru":
        return array
    r, z, n = np.split(array, 3)
    return np.concatenate([z, r, n])


def _name_copies(cell: Any, row: int) -> None:
    """Build each copy of a layer's cell in a name scope of its own, by which `lowered.py` finds it."""
    call, numbers = cell.call, iter(range(row << 20, (row + 1) << 20))

    def named(*arguments: Any, **options: Any) -> Any:
        with tf.name_scope(f"{TAG}{next(numbers)}"):
            return call(*arguments, **options)

    cell.call = named
