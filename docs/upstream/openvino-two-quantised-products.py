# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO computes two quantised products in a row wrongly, where the first one's input has a zero point.

Two dense layers with int8 weights, four rows, a relu between them. x and what the relu gives are quantised to 256 steps
by FakeQuantize. The same steps are computed in NumPy. With a range of x whose zero is step 128 the answer is right.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

ROWS, IN, HIDDEN, OUT, SCALE, STEP = 4, 16, 8, 4, 0.01, 1 / 128
BETWEEN = (0.0, 2.0)
random = np.random.default_rng(0)
weights = [random.integers(-127, 128, shape).astype(np.int8) for shape in ((HIDDEN, IN), (OUT, HIDDEN))]


def in_numpy(x, limits):
    hidden = np.maximum(quantised(x, limits) @ (weights[0] * SCALE).T, 0)
    return quantised(hidden, BETWEEN) @ (weights[1] * SCALE).T


def quantised(x, limits):
    low, high = limits
    step = (high - low) / 255
    return np.rint((np.clip(x, low, high) - low) / step) * step + low


def in_openvino(x, limits):
    parameter = ops.parameter(x.shape, np.float32)
    hidden = ops.relu(product(quantise(parameter, limits), weights[0]))
    model = ov.Model([product(quantise(hidden, BETWEEN), weights[1])], [parameter])
    return ov.Core().compile_model(model, "CPU")([x])[0]


def quantise(value, limits):
    low, high = map(np.float32, limits)
    return ops.fake_quantize(value, low, high, low, high, 256)


def product(value, weight):
    dequantised = ops.multiply(ops.convert(ops.constant(weight), "f32"), ops.constant(np.float32(SCALE)))
    return ops.matmul(value, dequantised, False, True)


def error(zero):
    """The largest error for a range of x in which step `zero` of 255 stands for 0."""
    limits = (-zero * STEP, (255 - zero) * STEP)
    x = np.random.default_rng(1).uniform(*limits, (ROWS, IN)).astype(np.float32)
    expected = in_numpy(x.astype(np.float64), limits)
    return np.abs(in_openvino(x, limits) - expected).max(), np.abs(expected).max()


at_128, _ = error(128)
at_100, largest = error(100)
print(f"largest result {largest:.2f}; off by {at_128:.4f} with the zero at step 128, by {at_100:.4f} at step 100")
sys.exit(int(at_128 < 0.1 < at_100))
