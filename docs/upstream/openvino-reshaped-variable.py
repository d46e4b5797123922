# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO computes the sum of a reshaped input and a reshaped variable wrongly.

y = h + x and h' = y, from h = 0, so y is the sum of all x: 1 3 6 10 15 for 1 2 3 4 5. The variable has the shape [1]
and the sum [1, 1]. Without the reshapes the answer is right.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino.op.util import Variable, VariableInfo


def compiled(reshaped):
    info = VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1]), ov.Type.f32, "h"
    variable = Variable(info)
    reshape = (
        (lambda value, shape: ops.reshape(value, np.int64(shape), False)) if reshaped else lambda value, shape: value
    )
    x = ops.parameter([1], np.float32, "x")
    h = ops.read_value(ops.constant(np.zeros(1, np.float32)), variable)
    total = ops.add(reshape(x, [1, 1]), reshape(h, [1, 1]))
    kept = ops.assign(reshape(total, [1]), variable)
    model = ov.Model([ops.result(reshape(total, [1]))], [kept], [x], "sum")
    return ov.compile_model(model, "CPU").create_infer_request()


def sums(reshaped):
    request = compiled(reshaped)
    return [float(request.infer({0: np.float32([x])})[0][0]) for x in (1, 2, 3, 4, 5)]


right, found = sums(reshaped=False), sums(reshaped=True)
assert right == [1, 3, 6, 10, 15], right
print(f"sums of 1 2 3 4 5: expected {right}, found {found}")
sys.exit(int(found != right))
