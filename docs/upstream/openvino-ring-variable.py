# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO drops the newest value of a ring that is kept in a variable.

The variable has three values. Each call leaves the oldest one out and puts x behind the others: ring' =
Concat(ring[1:], x). The answer is ring', so for 1 2 3 it is [0 0 1], [0 1 2], [1 2 3]. Where the variable is an input
and an output instead, the answer is right.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino.op.util import Variable, VariableInfo


def moved(ring, x):
    rest = ops.slice(ring, np.int64([1]), np.int64([3]), np.int64([1]), np.int64([1]))
    return ops.concat([rest, x], 1)


def by_variable(values):
    info = VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1, 3, 1]), ov.Type.f32, "ring"
    variable = Variable(info)
    x = ops.parameter([1, 1, 1], np.float32, "x")
    ring = moved(ops.read_value(ops.constant(np.zeros((1, 3, 1), np.float32)), variable), x)
    model = ov.Model(
        [ops.result(ops.reduce_sum(ring, np.int64([2]), False))], [ops.assign(ring, variable)], [x], "ring"
    )
    request = ov.compile_model(model, "CPU").create_infer_request()
    return [request.infer({0: np.full((1, 1, 1), value, np.float32)})[0].ravel().tolist() for value in values]


def by_arguments(values):
    x, ring = ops.parameter([1, 1, 1], np.float32, "x"), ops.parameter([1, 3, 1], np.float32, "ring")
    after = moved(ring, x)
    model = ov.Model([ops.result(ops.reduce_sum(after, np.int64([2]), False)), ops.result(after)], [x, ring], "ring")
    request = ov.compile_model(model, "CPU").create_infer_request()
    state, answers = np.zeros((1, 3, 1), np.float32), []
    for value in values:
        found = request.infer({0: np.full((1, 1, 1), value, np.float32), 1: state})
        answers.append(found[0].ravel().tolist())
        state = found[1].copy()
    return answers


right, found = by_arguments([1, 2, 3]), by_variable([1, 2, 3])
assert right == [[0, 0, 1], [0, 1, 2], [1, 2, 3]], right
print(f"a ring of three values, fed 1 2 3: expected {right}, found {found}")
sys.exit(int(found != right))
