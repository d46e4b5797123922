# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO does not compile a quantised value in a variable without an initial value.

h' = FakeQuantize(FakeQuantize(x) + h). apply_make_stateful_transformation makes a variable of h, without an initial
value. The CPU device throws when it compiles. Given zeros as its initial value, it compiles.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino._offline_transformations import apply_make_stateful_transformation


def quantised(value):
    low, high = np.float32(-1), np.float32(1)
    return ops.fake_quantize(value, low, high, low, high, 256)


def compiles(with_start):
    x, h = ops.parameter([1, 4], np.float32, "x"), ops.parameter([1, 4], np.float32, "h")
    total = ops.add(quantised(x), h)
    y, after = ops.result(ops.relu(total)), ops.result(quantised(total))
    for port, name in ((h.output(0), "h"), (after.output(0), "h_next")):
        port.get_tensor().set_names({name})
    model = ov.Model([y, after], [x, h], "cell")
    apply_make_stateful_transformation(model, {"h": "h_next"})
    (read,) = (node for node in model.get_ops() if node.get_type_name() == "ReadValue")
    if with_start:
        read.set_arguments([ops.constant(np.zeros((1, 4), np.float32)).output(0)])
        read.constructor_validate_and_infer_types()
    try:
        ov.compile_model(model, "CPU")
    except RuntimeError as error:
        print(str(error).strip().splitlines()[-1][-200:])
        return False
    return True


assert compiles(with_start=True)
found = compiles(with_start=False)
print(f"without an initial value: expected that it compiles, found {'that it does' if found else 'the error above'}")
sys.exit(int(not found))
