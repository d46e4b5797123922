# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO's products of bytes saturate on a processor with AVX2 and without VNNI.

y = FakeQuantize(x) · W, where all elements of x are 1, and all of W are one number in int8. AVX2 adds two products of
an unsigned and a signed byte in 16 bits: 2·255·64 fits, and 2·255·127 does not.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

SIZE = 64


def found(byte, **settings):
    """An element of y, which is 64."""
    x = ops.parameter([1, SIZE], np.float32)
    low, high = np.float32(0), np.float32(1)
    weights = ops.constant(np.full((SIZE, SIZE), byte, np.int8))
    scaled = ops.multiply(ops.convert(weights, np.float32), np.float32(1 / byte))
    y = ops.matmul(ops.fake_quantize(x, low, high, low, high, 256), scaled, False, False)
    compiled = ov.compile_model(ov.Model([y], [x]), "CPU", settings)
    return float(compiled([np.ones((1, SIZE), np.float32)])[0][0, 0])


values = {byte: found(byte) for byte in (64, 127)}
print("; ".join(f"bytes of {byte}: expected {SIZE}, found {value:.2f}" for byte, value in values.items()))
print(f"with LP_TRANSFORMS_MODE=NO, bytes of 127: found {found(127, LP_TRANSFORMS_MODE='NO'):.2f}")
sys.exit(int(abs(values[64] - SIZE) < 0.01 and abs(values[127] - SIZE) > 1))
