# ruff: noqa: E501
"""Modules of StableHLO as text, for tests."""

from __future__ import annotations

import re

import numpy as np


def literal(array):
    return str(np.asarray(array).tolist())


WEIGHTS = np.random.default_rng(0).standard_normal((5, 2)).astype("float32")
KEPT = f"""
module @net {{
  ml_program.global private mutable @h(dense<0.0> : tensor<1x2xf32>) : tensor<1x2xf32>
  ml_program.global private @w(dense<{literal(WEIGHTS)}> : tensor<5x2xf32>) : tensor<5x2xf32>
  func.func public @step(%x: tensor<1x3xf32> loc("x")) -> (tensor<1x2xf32> {{jax.result_info = "result['y']"}}) {{
    %h = ml_program.global_load @h : tensor<1x2xf32>
    %0 = call @cell(%x, %h) : (tensor<1x3xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    ml_program.global_store @h = %0 : tensor<1x2xf32>
    %1 = ml_program.global_load @h : tensor<1x2xf32>
    %2 = stablehlo.add %1, %0 : tensor<1x2xf32>
    return %2 : tensor<1x2xf32>
  }}
  func.func private @cell(%x: tensor<1x3xf32>, %h: tensor<1x2xf32>) -> tensor<1x2xf32> {{
    %w = ml_program.global_load_const @w : tensor<5x2xf32>
    %0 = stablehlo.concatenate %x, %h, dim = 1 : (tensor<1x3xf32>, tensor<1x2xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<1x5xf32>, tensor<5x2xf32>) -> tensor<1x2xf32>
    %2 = stablehlo.tanh %1 : tensor<1x2xf32>
    return %2 : tensor<1x2xf32>
  }}
}}
"""
"""A step with its state in a global, and its weights in another one that no call changes."""
CARRIED = f"""
module @net {{
  func.func public @main(%x: tensor<3x2xf32> loc("x"), %gain: tensor<f32> loc("gain"), %none: tensor<0x2xf32> loc("none"),
                         %h: tensor<2x2xf32> loc("h")) -> (tensor<2x2xf32> {{jax.result_info = "result['hn']"}},
                         tensor<4x2xf32> {{jax.result_info = "result['y']"}}) {{
    %w = stablehlo.constant dense<{literal(WEIGHTS)}> : tensor<5x2xf32>
    %0 = stablehlo.concatenate %x, %none, %h, dim = 0 : (tensor<3x2xf32>, tensor<0x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
    %1 = stablehlo.dot_general %w, %0, contracting_dims = [0] x [0] : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.logistic %1 : tensor<2x2xf32>
    %3 = stablehlo.broadcast_in_dim %gain, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<2x2xf32>
    %5 = stablehlo.concatenate %4, %2, dim = 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    return %2, %5 : tensor<2x2xf32>, tensor<4x2xf32>
  }}
}}
"""
"""A step with its state as argument and result, the batch as the last axis, a constant, and an input without elements."""
CARRIED_ANSWERS = ("state.h=hn", "constants.gain=0.5", "batch=1")
LOOP = """
module @loop {
  func.func public @main(%x: tensor<4x1x2xf32> loc("x")) -> tensor<4x1x2xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %end = stablehlo.constant dense<4> : tensor<i32>
    %h = stablehlo.constant dense<0.5> : tensor<1x1x2xf32>
    %0:3 = stablehlo.while(%i = %zero, %a = %h, %y = %x) : tensor<i32>, tensor<1x1x2xf32>, tensor<4x1x2xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 1, 2] : (tensor<4x1x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x2xf32>
      %2 = stablehlo.add %a, %1 : tensor<1x1x2xf32>
      %3 = stablehlo.sine %2 : tensor<1x1x2xf32>
      %4 = stablehlo.dynamic_update_slice %y, %3, %i, %zero, %zero : (tensor<4x1x2xf32>, tensor<1x1x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1x2xf32>
      %5 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %5, %3, %4 : tensor<i32>, tensor<1x1x2xf32>, tensor<4x1x2xf32>
    }
    return %0#2 : tensor<4x1x2xf32>
  }
}
"""
"""A loop over the four steps of a call, which begins from the same state in each."""
LOOP_ANSWERS = ("time=0", "batch=1")
RING = """
module @ring {
  func.func public @main(%x: tensor<1x3xf32> loc("x"), %buffer: tensor<4x3xf32> loc("buffer"), %position: tensor<i32> loc("position"))
      -> (tensor<1x3xf32> {jax.result_info = "result['y']"}, tensor<4x3xf32> {jax.result_info = "result['next_buffer']"},
          tensor<i32> {jax.result_info = "result['next_position']"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %buffer, %x, %position, %zero : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    %1 = stablehlo.add %position, %one : tensor<i32>
    %2 = stablehlo.remainder %1, %four : tensor<i32>
    %3 = stablehlo.dynamic_slice %0, %2, %zero, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %4 = stablehlo.subtract %3, %x : tensor<1x3xf32>
    return %4, %0, %2 : tensor<1x3xf32>, tensor<4x3xf32>, tensor<i32>
  }
}
"""
"""The last four inputs, and where the next one goes: a state of whole numbers beside one of floats."""
RING_ANSWERS = ("state.buffer=next_buffer", "state.position=next_position", "batch=0")
_UNITS = np.random.default_rng(1).standard_normal((11, 8)).astype("float32") / 3
WIDE = f"""
module @wide {{
  func.func public @main(%x: tensor<1x3xbf16> loc("x"), %h: tensor<1x8xf32> loc("h"))
      -> (tensor<1x8xbf16> {{jax.result_info = "result['y']"}}, tensor<1x8xf32> {{jax.result_info = "result['next_h']"}}) {{
    %w = stablehlo.constant dense<{literal(_UNITS)}> : tensor<11x8xf32>
    %0 = stablehlo.convert %x : (tensor<1x3xbf16>) -> tensor<1x3xf32>
    %1 = stablehlo.concatenate %0, %h, dim = 1 : (tensor<1x3xf32>, tensor<1x8xf32>) -> tensor<1x11xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<1x11xf32>, tensor<11x8xf32>) -> tensor<1x8xf32>
    %3 = stablehlo.tanh %2 : tensor<1x8xf32>
    %4 = stablehlo.convert %3 : (tensor<1x8xf32>) -> tensor<1x8xbf16>
    return %4, %3 : tensor<1x8xbf16>, tensor<1x8xf32>
  }}
}}
"""
"""A state of float32 between an input and an output of bfloat16."""
WIDE_ANSWERS = ("state.h=next_h", "batch=0")
FILES = {"kept": KEPT, "carried": CARRIED, "loop": LOOP, "ring": RING, "wide": WIDE}
ANSWERS = {"kept": (), "carried": CARRIED_ANSWERS, "loop": LOOP_ANSWERS, "ring": RING_ANSWERS, "wide": WIDE_ANSWERS}


def saved(name, folder, types=()):
    """The module in a file, with the types of elements that `types` has in place of its own."""
    path, text = folder / f"{name}.mlir", FILES[name]
    for own, other in dict(types).items():
        text = re.sub(rf"(?<=[x<]){own}>", f"{other}>", text)
    path.write_text(text)
    return path
