# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "numpy"]
# ///
"""An operation with two results, compiled by IREE, writes them over the arguments that its sums start from.

y = v + x w and z = u + x w, with arguments of ones: both are 1 + 4 = 5, however often the function is called.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from iree import runtime

PROGRAM = """
#left = affine_map<(m, n, k) -> (m, k)>
#right = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %v: tensor<2x4xf32>, %u: tensor<2x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %r:2 = linalg.generic
      {indexing_maps = [#left, #right, #out, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%v, %u : tensor<2x4xf32>, tensor<2x4xf32>) {
    ^bb0(%a: f32, %b: f32, %y: f32, %z: f32):
      %product = arith.mulf %a, %b : f32
      %next_y = arith.addf %y, %product : f32
      %next_z = arith.addf %z, %product : f32
      linalg.yield %next_y, %next_z : f32, f32
  } -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return %r#0, %r#1 : tensor<2x4xf32>, tensor<2x4xf32>
}
"""

with tempfile.TemporaryDirectory() as name:
    folder, tools = Path(name), Path(sys.executable).parent
    (folder / "g.mlir").write_text(PROGRAM)
    target = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    subprocess.run(
        [tools / "iree-compile", "g.mlir", "-o", "g.vmfb", *target, "--iree-llvmcpu-target-cpu=host"],
        cwd=folder,
        check=True,
    )
    module = runtime.load_vm_flatbuffer_file(str(folder / "g.vmfb"), driver="local-sync")
    shapes = (2, 4), (4, 4), (2, 4), (2, 4)
    arguments = [runtime.asdevicearray(runtime.get_device("local-sync"), np.ones(s, np.float32)) for s in shapes]
    found = []
    for _ in range(3):
        y = module.main(*arguments)[0].to_host()
        found.append(float(y[0, 0]))
    v = float(arguments[2].to_host()[0, 0])
print(f"y of three calls: expected 5 5 5, found {found}; v: expected 1, found {v}")
sys.exit(found != [5, 5, 5] or v != 1)
