# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO does not keep a value of 16 bits within its range.

y = 2 · FakeQuantize(1.5 · x), from −1 to 1. With 256 and 65,535 levels y stays within −2 and 2. With 65,536 levels, as
int16 has them, the range is ignored.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

X = np.array([[-3, -0.5, 0.5, 3]], np.float32)


def largest(levels):
    """The largest element of y, which is 2 at the most."""
    x, low, high = ops.parameter(X.shape, np.float32), np.float32(-1), np.float32(1)
    quantised = ops.fake_quantize(ops.multiply(x, np.float32(1.5)), low, high, low, high, levels)
    model = ov.Model([ops.multiply(quantised, np.float32(2))], [x])
    return np.abs(ov.compile_model(model, "CPU")([X])[0]).max()


found = {levels: largest(levels) for levels in (256, 65535, 65536)}
print("; ".join(f"{levels} levels: the largest element is {value:.3f}" for levels, value in found.items()))
sys.exit(int(found[256] < 2.001 and found[65536] > 2.001))
