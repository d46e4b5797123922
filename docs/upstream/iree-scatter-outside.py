# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "numpy"]
# ///
"""A scatter to a row outside of the array writes memory outside of the array in IREE.

StableHLO leaves such a row out, and so does JAX (`x.at[i].set(row)`). Here an array of 2 rows gets row 1, row 2, and
rows that are far away. Each runs in a process of its own.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from iree import runtime

PROGRAM = """
func.func public @main(%x: tensor<2x4xf32>, %i: tensor<1xi32>, %row: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = "stablehlo.scatter"(%x, %i, %row) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%old: tensor<f32>, %new: tensor<f32>):
      stablehlo.return %new : tensor<f32>
  }) : (tensor<2x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
"""


def call(program: str, row: int) -> None:
    module = runtime.load_vm_flatbuffer_file(program, driver="local-sync")
    x, values = np.zeros((2, 4), np.float32), np.full(4, 7, np.float32)
    y = module.main(x, np.array([row], np.int32), values).to_host()
    expected = x.copy()
    if row < len(x):
        expected[row] = values
    sys.exit(not np.array_equal(y, expected))


if len(sys.argv) == 3:
    call(sys.argv[1], int(sys.argv[2]))
with tempfile.TemporaryDirectory() as name:
    folder, tools = Path(name), Path(sys.executable).parent
    (folder / "g.mlir").write_text(PROGRAM)
    target = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    subprocess.run(
        [tools / "iree-compile", "g.mlir", "-o", "g.vmfb", *target, "--iree-llvmcpu-target-cpu=host"],
        cwd=folder,
        check=True,
    )
    rows = 1, 2, 100_000, 100_000_000
    command = [sys.executable, __file__, str(folder / "g.vmfb")]
    found = {row: subprocess.run([*command, str(row)], capture_output=True).returncode for row in rows}
print(f"exit status by row: expected 0 in each, found {found}; -11 is a SIGSEGV")
sys.exit(any(found.values()))
