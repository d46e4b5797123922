# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "numpy"]
# ///
"""Rows of an array that are written one place further into the same array are a copy that IREE's runtime refuses.

So a ring buffer moves on: `ring[:-1] = ring[1:]`. Where the array is an argument, the result is right. Where it is
computed in the program, the call raises an error.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from iree import runtime

PROGRAM = """
func.func public @moved(%ring: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  COMPUTED
  %rows = stablehlo.slice %own [1:5, 0:3] : (tensor<5x3xf32>) -> tensor<4x3xf32>
  %y = stablehlo.dynamic_update_slice %own, %rows, %zero, %zero
      : (tensor<5x3xf32>, tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
"""
OWN = {
    "an argument": PROGRAM.replace("  COMPUTED\n", "").replace("%own", "%ring"),
    "computed": PROGRAM.replace("COMPUTED", "%own = stablehlo.add %ring, %ring : tensor<5x3xf32>"),
}


def call(program: str, scale: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder, tools = Path(name), Path(sys.executable).parent
        (folder / "g.mlir").write_text(program)
        target = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
        subprocess.run(
            [tools / "iree-compile", "g.mlir", "-o", "g.vmfb", *target, "--iree-llvmcpu-target-cpu=host"],
            cwd=folder,
            check=True,
        )
        module = runtime.load_vm_flatbuffer_file(str(folder / "g.vmfb"), driver="local-sync")
        ring = np.arange(15, dtype=np.float32).reshape(5, 3)
        expected = scale * np.concatenate([ring[1:], ring[4:]])
        try:
            y = module.moved(ring).to_host()
        except ValueError as error:
            return str(error).split(";")[1].strip()
        return "right" if np.array_equal(y, expected) else f"wrong: {y.tolist()}"


found = {name: call(program, 1 + (name == "computed")) for name, program in OWN.items()}
for name, result in found.items():
    print(f"the array is {name}: expected right, found {result}")
sys.exit(any(result != "right" for result in found.values()))
