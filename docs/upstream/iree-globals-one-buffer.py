# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "numpy"]
# ///
"""Two globals that begin with equal values share one buffer in IREE: a row written into one is in the other too.

`step` writes row i of two arrays of zeros: a gets x, and b gets 2 x. Then a's rows should be 1 and 2, and b's 2 and 4.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from iree import runtime

PROGRAM = """
module @rnn {
  ml_program.global private mutable @a(dense<0.0> : tensor<2x4xf32>) : tensor<2x4xf32>
  ml_program.global private mutable @b(dense<BEGIN> : tensor<2x4xf32>) : tensor<2x4xf32>
  func.func public @step(%x: tensor<1x4xf32>, %i: tensor<i32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %a = ml_program.global_load @a : tensor<2x4xf32>
    %b = ml_program.global_load @b : tensor<2x4xf32>
    %double = stablehlo.add %x, %x : tensor<1x4xf32>
    %next_a = stablehlo.dynamic_update_slice %a, %x, %i, %zero
        : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    %next_b = stablehlo.dynamic_update_slice %b, %double, %i, %zero
        : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    ml_program.global_store @a = %next_a : tensor<2x4xf32>
    ml_program.global_store @b = %next_b : tensor<2x4xf32>
    return
  }
  func.func public @get() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %a = ml_program.global_load @a : tensor<2x4xf32>
    %b = ml_program.global_load @b : tensor<2x4xf32>
    return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
  }
}
"""


def rows(begin: str) -> list[list[float]]:
    """The first column of a and of b after two steps, where b begins with the value `begin`."""
    with tempfile.TemporaryDirectory() as name:
        folder, tools = Path(name), Path(sys.executable).parent
        (folder / "g.mlir").write_text(PROGRAM.replace("BEGIN", begin))
        target = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
        subprocess.run(
            [tools / "iree-compile", "g.mlir", "-o", "g.vmfb", *target, "--iree-llvmcpu-target-cpu=host"],
            cwd=folder,
            check=True,
        )
        module = runtime.load_vm_flatbuffer_file(str(folder / "g.vmfb"), driver="local-sync")
        for step in range(2):
            module.step(np.full((1, 4), step + 1, np.float32), np.int32(step))
        return [array.to_host()[:, 0].tolist() for array in module.get()]


equal, different = rows("0.0"), rows("1.0")
print(
    f"a and b: expected [1, 2] and [2, 4]; found {equal} where both begin with 0, and {different} where b begins with 1"
)
sys.exit(equal != [[1, 2], [2, 4]] or different != [[1, 2], [2, 4]])
