# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx==1.23.2", "numpy"]
# ///
"""IREE drops the y of an ONNX Scan of one pass whose state is a part of an array.

The right y is 2 + 3 = 5. Found with 3.13: 0.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from iree import runtime

GRAPH = """
g (float[2] s, float[1, 1] xs) => (float[1] last, float[1, 1] y) {
  s0, s1 = Split <axis = 0> (s)
  last, y = Scan <num_scan_inputs = 1,
               body = b (float[1] h, float[1] x) => (float[1] n, float[1] o) {n = Add(h, x) o = Identity(n)}> (s1, xs)
}
"""
INPUTS = [1, 2], [[3]]
EXPECTED = np.float32([5])

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
