# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx==1.23.2", "numpy"]
# ///
"""IREE ignores the clip of an ONNX RNN.

tanh of 3, clipped to 0.5, is 0.462. Found with 3.13: 0.995, which is tanh of 3.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from iree import runtime

GRAPH = """
g (float[1, 1, 1] x, float[1, 1, 1] w, float[1, 1, 1] r) => (float[1, 1, 1, 1] all, float[1, 1, 1] y) {
  all, y = RNN <hidden_size = 1, clip = 0.5> (x, w, r)
}
"""
INPUTS = [[[3]]], [[[1]]], [[[1]]]
EXPECTED = np.float32([0.4621])

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
