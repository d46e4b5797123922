# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO takes the bits of bfloat16 numbers in an ONNX file for numbers.

A weight may have its elements in `raw_data` or in `int32_data`. ONNX has the bits of a bfloat16 number in both.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

BITS = {1.0: 0x3F80, -2.0: 0xC000, 0.5: 0x3F00}


def read(raw):
    """The elements of a weight, cast to float32."""
    weight = TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[len(BITS)])
    if raw:
        weight.raw_data = np.array([*BITS.values()], np.uint16).tobytes()
    else:
        weight.int32_data.extend(BITS.values())
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "wide"], ["y"]),
    ]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [len(BITS)])] for name in "xy"]
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph(nodes, "g", *ends, [weight]), opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    compiled = ov.compile_model(ov.Core().read_model(model.SerializeToString()), "CPU")
    return compiled([np.zeros(len(BITS), np.float32)])[0].tolist()


found = {raw: read(raw) for raw in (True, False)}
print(f"in raw_data: {found[True]}; in int32_data: {found[False]}; expected: {[*BITS]}")
sys.exit(int(found[True] == [*BITS] and found[False] != [*BITS]))
