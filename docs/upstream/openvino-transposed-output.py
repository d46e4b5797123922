# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO never writes the output of a transposed convolution, where what goes into it is an output too.

s = x + h / 2, and y is a transposed convolution of s. y and s have another shape outside, by a Reshape. With both as
outputs y is memory that nobody wrote. With y alone it is right.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

draw = np.random.default_rng(0)
WEIGHTS, X = draw.normal(size=(4, 2, 1, 3)).astype(np.float32), draw.normal(size=(1, 1, 32)).astype(np.float32)


def reshape(value, *shape):
    return ops.reshape(value, np.array(shape, np.int64), False)


def y_of(with_s):
    x, h = (ops.parameter(X.shape, np.float32) for _ in range(2))
    s = ops.add(reshape(x, 1, 8, 4), ops.multiply(reshape(h, 1, 8, 4), np.float32(0.5)))
    laid = reshape(ops.transpose(s, np.array([0, 2, 1])), 1, 4, 1, 8)
    size = np.array([1, 16], np.int64)
    made = ops.convolution_backprop_data(laid, ops.constant(WEIGHTS), [1, 2], output_shape=size, auto_pad="same_upper")
    y = reshape(ops.transpose(reshape(made, 1, 2, 16), np.array([0, 2, 1])), 1, 1, 32)
    results = [ops.result(y), *([ops.result(reshape(s, 1, 1, 32))] if with_s else [])]
    return ov.compile_model(ov.Model(results, [x, h]), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([X, X])[0]


alone, both = y_of(False), y_of(True)
error = np.abs(alone - both).max()
print(f"largest element of y: {np.abs(alone).max():.3f} with y alone, {np.abs(both).max():.3g} with s beside it")
sys.exit(int(not error < 1e-4))
