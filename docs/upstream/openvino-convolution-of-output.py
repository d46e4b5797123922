# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO convolves memory that was never written, where what goes into the convolution is an output too.

s = tanh(x), and y is a convolution of s with its channels moved by a Transpose. s has another shape outside, by a
Reshape. With both as outputs y is computed from memory that nobody wrote. With y alone it is right.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

draw = np.random.default_rng(0)
X = draw.normal(size=(1, 1, 32)).astype(np.float32)
PLAIN, BACK = (draw.normal(size=shape).astype(np.float32) for shape in ((2, 4, 1, 3), (4, 2, 1, 3)))
CONVOLUTIONS = {
    "Convolution": lambda s: ops.convolution(s, ops.constant(PLAIN), [1, 1], [0, 0], [0, 0], [1, 1]),
    "ConvolutionBackpropData": lambda s: ops.convolution_backprop_data(s, ops.constant(BACK), [1, 2]),
}


def reshape(value, *shape):
    return ops.reshape(value, np.array(shape, np.int64), False)


def y_of(convolution, with_s):
    x = ops.parameter(X.shape, np.float32)
    s = ops.tanh(reshape(x, 1, 8, 4))
    y = convolution(reshape(ops.transpose(s, np.array([0, 2, 1])), 1, 4, 1, 8))
    results = [ops.result(y), *([ops.result(reshape(s, 1, 1, 32))] if with_s else [])]
    return ov.compile_model(ov.Model(results, [x]), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]


wrong = False
for name, convolution in CONVOLUTIONS.items():
    alone, both = y_of(convolution, False), y_of(convolution, True)
    print(
        f"{name}: largest element of y {np.abs(alone).max():.3f} with y alone, {np.abs(both).max():.3g} with s beside"
    )
    wrong |= not np.abs(alone - both).max() < 1e-4
sys.exit(int(wrong))
