# /// script
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy"]
# ///
"""OpenVINO ends with a segmentation fault where it compiles a Concat that is quantised twice.

y is a Concat of two inputs, quantised and dequantised twice with one scale and a zero point that is not 0.
"""

import subprocess
import sys

import numpy as np
import openvino
from onnx import TensorProto, checker, helper, numpy_helper


def compile_model(zero, times):
    nodes, last = [helper.make_node("Concat", ["x", "c"], ["k"], axis=1)], "k"
    for name in ("a", "b")[:times]:
        nodes.append(helper.make_node("QuantizeLinear", [last, "scale", "zero"], [f"{name}q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}q", "scale", "zero"], [name]))
        last = name
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 6]) for name in "xc"]
    result = helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 12])
    constants = {"scale": np.array(0.02, np.float32), "zero": np.array(zero, np.int8)}
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "graph", ends, [result], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    openvino.compile_model(openvino.Core().read_model(model.SerializeToString()), "CPU")


if len(sys.argv) == 3:
    compile_model(int(sys.argv[1]), int(sys.argv[2]))
    sys.exit()
crashed = False
for zero, times in ((-2, 1), (0, 2), (-2, 2)):
    code = subprocess.run([sys.executable, __file__, str(zero), str(times)], timeout=120, check=False).returncode
    crashed |= code < 0
    print(f"zero point {zero}, quantised {times} times: {f'ended by signal {-code}' if code else 'compiled'}")
sys.exit(int(crashed))
