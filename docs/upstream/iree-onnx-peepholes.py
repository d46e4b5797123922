# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx==1.23.2", "numpy"]
# ///
"""IREE ignores the peepholes of an ONNX LSTM.

The gates are i = 0.5, f = 1 and o = 1, the new value is 1, and c is 1 before. A peephole from c opens i: h is tanh 2.
Found with 3.13: tanh 1.5, as if there were none.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from iree import runtime

GRAPH = """
g (float[1, 1, 1] x, float[1, 4, 1] w, float[1, 4, 1] r, float[1, 8] b, float[1, 1, 1] h, float[1, 1, 1] c,
   float[1, 3] p) => (float[1, 1, 1, 1] y) {
  y = LSTM <hidden_size = 1> (x, w, r, b, , h, c, p)
}
"""
GATES = [[[0], [100], [100], [100]]]  # in the order i o f c
INPUTS = [[[1]]], GATES, [[[0]] * 4], [[0] * 8], [[[0]]], [[[1]]], [[100, 0, 0]]
EXPECTED = 0.964

model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + GRAPH)
with tempfile.TemporaryDirectory() as name:
    folder, tools = Path(name), Path(sys.executable).parent
    onnx.save(model, folder / "g.onnx")
    subprocess.run([tools / "iree-import-onnx", "g.onnx", "-o", "g.mlir"], cwd=folder, check=True)
    target = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    subprocess.run(
        [tools / "iree-compile", "g.mlir", "-o", "g.vmfb", *target, "--iree-llvmcpu-target-cpu=host"],
        cwd=folder,
        check=True,
    )
    module = runtime.load_vm_flatbuffer_file(str(folder / "g.vmfb"), driver="local-sync")
    y = module["g"](*map(np.float32, INPUTS)).to_host().item()
print(f"expected {EXPECTED}, found {y:.3f}")
sys.exit(int(abs(y - EXPECTED) > 1e-3))
