# /// script
# dependencies = ["openvino==2026.4.1", "numpy"]
# ///
"""OpenVINO's compiler dies of attention whose result is added to a sum, before a depthwise convolution.

x = r + r2 + softmax(q·k)·v, then x + sigmoid(convolution of a cache and x), as in a zipformer's encoder. Compiling for
the CPU ends the process by a signal. With SNIPPETS_MODE=DISABLE it compiles.
"""

import subprocess
import sys

PROGRAM = """
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

q, r, r2 = (ops.parameter([1, 2, 6], np.float32) for _ in range(3))
k, v = (ops.parameter([1, 6, 6], np.float32) for _ in range(2))
cache = ops.parameter([1, 6, 2], np.float32)
turned = np.int64([0, 2, 1])
attended = ops.matmul(ops.softmax(ops.matmul(q, k, False, False), 2), v, False, False)
x = ops.add(ops.add(r, r2), attended)
joined = ops.concat([cache, ops.transpose(x, turned)], 2)
weights = ops.constant(np.random.default_rng(0).standard_normal((6, 1, 1, 3)).astype(np.float32))
convolved = ops.group_convolution(joined, weights, [1], [0], [0], [1])
convolved = ops.add(convolved, ops.constant(np.ones((1, 6, 1), np.float32)))
y = ops.add(x, ops.sigmoid(ops.transpose(convolved, turned)))
model = ov.Model([y], [q, k, v, r, r2, cache], "encoder")
settings = {} if sys.argv[1] == "snippets" else {"SNIPPETS_MODE": "DISABLE"}
ov.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, **settings})
"""


def status(mode):
    return subprocess.run([sys.executable, "-c", PROGRAM, mode], capture_output=True).returncode


without, found = status("plain"), status("snippets")
assert without == 0, without
print(f"exit status of the compilation: expected 0, found {found} (-11 is SIGSEGV); without snippets {without}")
sys.exit(int(found < 0))
