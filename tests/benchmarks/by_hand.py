"""An LSTM in each runtime's public interface, as a careful user writes it: what calls of the suite are compared with.

    python by_hand.py BACKEND:ROUTE TIME CHUNK HIDDEN FOLDER

One process. It builds the suite's program and its own, looks whether both compute the same, and times both in turn. It
prints a JSON list with the seconds per call of each round, `[suite, by hand]`. The programs by hand have the LSTM's
weights and the inputs from the suite, and nothing else of it. Weights are PyTorch's: rows of gates i, f, g, o.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rnnbench.backends import Request, find, request_of
from rnnbench.cases import Limits, Measure, Strategy, Target, Trial
from rnnbench.rnn import Model, draw_inputs, draw_weights

INPUT = 64
RING = 8
ROUNDS, TURN_S = 6, 0.15


class Call(Protocol):
    """A program by hand. A call advances it by the next chunk, x [chunk, 1, input], and waits until that is done."""

    def __call__(self) -> object: ...
    def y(self) -> np.ndarray:
        """The output of the last call, [chunk, 1, hidden]."""
        ...


class OnnxRuntime:
    """ONNX's LSTM. Inputs and outputs are bound once for each chunk of the ring; the state goes to and fro."""

    def __init__(self, layer: Any, time: str, ring: list[np.ndarray]) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = ort.InferenceSession(_onnx_lstm(layer, len(ring[0])), options, ["CPUExecutionProvider"])
        hidden = layer.w_hh.shape[1]
        self._y = ort.OrtValue.ortvalue_from_numpy(np.zeros((len(ring[0]), 1, 1, hidden), np.float32))
        states = [[ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 1, hidden), np.float32)) for _ in "hc"] for _ in "ab"]
        bindings = []
        for number, x in enumerate(ring):
            binding = session.io_binding()
            before, after = states[number % 2], states[(number + 1) % 2]
            binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
            binding.bind_ortvalue_output("y", self._y)
            for name, given, result in zip("hc", before, after, strict=True):
                binding.bind_ortvalue_input(name, given)
                binding.bind_ortvalue_output(f"{name}_n", result)
            bindings.append(binding)
        self._run, self._next = session.run_with_iobinding, cycle(bindings).__next__

    def __call__(self) -> None:
        self._run(self._next())

    def y(self) -> np.ndarray:
        return np.asarray(self._y.numpy()[:, 0])


class Jax:
    """`lax.scan` over the cell, or the cell written out, under `jit`. The weights are constants of the program."""

    def __init__(self, layer: Any, time: str, ring: list[np.ndarray]) -> None:
        import jax
        import jax.numpy as jnp

        w_ih, w_hh, bias = layer.w_ih.T, layer.w_hh.T, layer.b_ih + layer.b_hh

        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(x @ w_ih + h @ w_hh + bias, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        @jax.jit
        def chunk(h: Any, c: Any, x: Any) -> Any:
            if time == "looped":
                (h, c), y = jax.lax.scan(step, (h, c), x)
                return h, c, y
            rows = []
            for number in range(len(x)):
                (h, c), row = step((h, c), x[number])
                rows.append(row)
            return h, c, jnp.stack(rows)

        self._chunk, self._ready = chunk, jax.block_until_ready
        self._next = cycle([jax.device_put(x) for x in ring]).__next__
        self._h = self._c = jnp.zeros((1, layer.w_hh.shape[1]), jnp.float32)

    def __call__(self) -> None:
        self._h, self._c, self._y = self._chunk(self._h, self._c, self._next())
        self._ready(self._y)

    def y(self) -> np.ndarray:
        return np.asarray(self._y)


class TensorFlow:
    """A `tf.function` with the cell written out, or in a loop. Its concrete function is called with tensors."""

    def __init__(self, layer: Any, time: str, ring: list[np.ndarray]) -> None:
        import tensorflow as tf

        self._chunk = _tensorflow_chunk(layer, len(ring[0]), loop=time == "looped")
        self._next = cycle([tf.constant(x) for x in ring]).__next__
        self._h = self._c = tf.zeros((1, layer.w_hh.shape[1]))

    def __call__(self) -> None:
        self._h, self._c, self._y = self._chunk(self._h, self._c, self._next())

    def y(self) -> np.ndarray:
        return np.asarray(self._y.numpy())


class LiteRt:
    """The function of TensorFlow, converted. A call sets the inputs and gets the state."""

    def __init__(self, layer: Any, time: str, ring: list[np.ndarray]) -> None:
        import tensorflow as tf
        from ai_edge_litert.interpreter import Interpreter

        function = _tensorflow_chunk(layer, len(ring[0]), loop=time == "looped")
        model = tf.lite.TFLiteConverter.from_concrete_functions([function], tf.Module()).convert()
        self._interpreter = Interpreter(model_content=model, num_threads=1)
        self._interpreter.allocate_tensors()
        signature = Interpreter(model_content=model).get_signature_runner()
        given, results = signature.get_input_details(), signature.get_output_details()
        self._given = [given[name]["index"] for name in ("h", "c", "x")]
        self._results = [results[f"output_{number}"]["index"] for number in range(3)]
        self._next = cycle(ring).__next__
        self._state = [np.zeros((1, layer.w_hh.shape[1]), np.float32) for _ in "hc"]

    def __call__(self) -> None:
        interpreter = self._interpreter
        for index, array in zip(self._given, (*self._state, self._next()), strict=True):
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        self._state = [interpreter.get_tensor(index) for index in self._results[:2]]

    def y(self) -> np.ndarray:
        return np.asarray(self._interpreter.get_tensor(self._results[2]))


def _onnx_lstm(layer: Any, steps: int) -> bytes:
    """x [steps, 1, input], h and c [1, 1, hidden] → y [steps, 1, 1, hidden], h_n, c_n. ONNX's gates: i o f g."""
    from onnx import TensorProto, helper, numpy_helper

    def rows(array: np.ndarray) -> np.ndarray:
        i, f, g, o = np.split(array, 4)
        return np.concatenate([i, o, f, g])

    hidden = layer.w_hh.shape[1]
    weights = {"w": rows(layer.w_ih), "r": rows(layer.w_hh), "b": np.concatenate([rows(layer.b_ih), rows(layer.b_hh)])}
    constants = [numpy_helper.from_array(array[np.newaxis], name) for name, array in weights.items()]
    node = helper.make_node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["y", "h_n", "c_n"], hidden_size=hidden)
    state = (1, 1, hidden)
    shapes = {"x": (steps, 1, INPUT), "h": state, "c": state, "y": (steps, 1, 1, hidden), "h_n": state, "c_n": state}
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    graph = helper.make_graph(
        [node], "lstm", [values[n] for n in ("x", "h", "c")], [values[n] for n in ("y", "h_n", "c_n")], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def _tensorflow_chunk(layer: Any, steps: int, loop: bool) -> Any:
    """The concrete function of h and c [1, hidden] and x [steps, 1, input], which gives h, c and y."""
    import tensorflow as tf

    state = tf.TensorSpec((1, layer.w_hh.shape[1]), tf.float32)
    x_of_chunk = tf.TensorSpec((steps, 1, INPUT), tf.float32)

    w_ih, w_hh, bias = tf.constant(layer.w_ih.T), tf.constant(layer.w_hh.T), tf.constant(layer.b_ih + layer.b_hh)

    def step(h: Any, c: Any, x: Any) -> Any:
        i, f, g, o = tf.split(tf.matmul(x, w_ih) + tf.matmul(h, w_hh) + bias, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    def unrolled(h: Any, c: Any, x: Any) -> Any:
        y = []
        for number in range(steps):
            h, c = step(h, c, x[number])
            y.append(h)
        return h, c, tf.stack(y)

    def looped(h: Any, c: Any, x: Any) -> Any:
        y = tf.TensorArray(tf.float32, steps, element_shape=h.shape)
        for number in tf.range(steps):
            h, c = step(h, c, x[number])
            y = y.write(number, h)
        return h, c, y.stack()

    return tf.function(looped if loop else unrolled).get_concrete_function(state, state, x_of_chunk)


BY_HAND: dict[str, Callable[..., Call]] = {
    "onnxruntime": OnnxRuntime,
    "jax": Jax,
    "tensorflow": TensorFlow,
    "litert": LiteRt,
}


def rounds(suite: Callable[[], object], hand: Callable[[], object]) -> Iterator[tuple[float, float]]:
    """Seconds per call of both, in turn; every other round runs backwards."""
    for number in range(ROUNDS):
        figures = dict.fromkeys((suite, hand), 0.0)
        for call in (suite, hand)[:: -1 if number % 2 else 1]:
            figures[call] = _turn(call)
        yield figures[suite], figures[hand]


def _turn(call: Callable[[], object]) -> float:
    seconds, end = [], time.perf_counter() + TURN_S
    while (start := time.perf_counter()) < end:
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main(target: str, time: str, chunk: str, hidden: str, folder: str) -> None:
    backend, route = target.split(":")
    model, steps = Model(cell="lstm", input=INPUT, hidden=int(hidden)), int(chunk)
    strategy = Strategy(time, "stitched", steps)  # type: ignore[arg-type]
    trial = Trial(
        "by-hand", Target(backend, route), model, strategy, steps, 1, "float32", "cpu", 1, 0, Limits(), Measure()
    )
    weights = draw_weights(model, 0)
    adapter = find(backend)
    adapter.load()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    request: Request = request_of(trial, weights)
    x = draw_inputs(model, RING * steps, 1, 0)
    ring = [np.ascontiguousarray(x[start : start + steps]) for start in range(0, len(x), steps)]
    bound = adapter.build(request, Path(folder)).open().bind([{"x": part} for part in ring])
    hand = BY_HAND[backend](weights.layers[0], time, ring)

    def suite() -> None:
        bound()
        bound.sync()

    for _ in range(RING + 1):
        suite()
        hand()
    np.testing.assert_allclose(bound.output()["y"], hand.y(), atol=1e-4)
    print(json.dumps(list(rounds(suite, hand))))


if __name__ == "__main__":
    main(*sys.argv[1:])
