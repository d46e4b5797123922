# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx==1.23.2", "numpy"]
# ///
"""IREE computes an ONNX GRU wrongly whose gates have a hard sigmoid.

The gate is 0.2·1 + 0.5 = 0.7, and y is (1 − 0.7)·tanh 1 = 0.228. Found with 3.13: 0, as if the gate were its input.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from iree import runtime

GRAPH = """
g (float[1, 1, 1] x, float[1, 3, 1] w, float[1, 3, 1] r) => (float[1, 1, 1, 1] all, float[1, 1, 1] y) {
  all, y = GRU <hidden_size = 1, activations = ["HardSigmoid", "Tanh"]> (x, w, r)
}
"""
INPUTS = [[[1]]], [[[1], [1], [1]]], [[[1], [1], [1]]]
EXPECTED = np.float32([0.2285])

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
    y = module["g"](*map(np.float32, INPUTS))[1].to_host().ravel()
print("expected", EXPECTED, "found", y)
sys.exit(not np.allclose(y, EXPECTED, atol=1e-3))
