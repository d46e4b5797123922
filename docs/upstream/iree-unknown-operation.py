# /// script
# dependencies = ["iree-base-compiler==3.13.0"]
# ///
"""iree-compile ends with SIGSEGV at an operation of a dialect that it does not know.

The same function with StableHLO's operation in its place is compiled.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %y = "{}"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}}
"""


def status(operation: str) -> int:
    """How `iree-compile` ends. Its launcher gives 245 for a SIGSEGV, which is −11 in a byte."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "g.mlir").write_text(PROGRAM.format(operation))
        target = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
        command = [Path(sys.executable).parent / "iree-compile", "g.mlir", "-o", "g.vmfb", *target]
        return subprocess.run([*command, "--iree-llvmcpu-target-cpu=host"], cwd=folder, capture_output=True).returncode


known, unknown = status("stablehlo.tanh"), status("tf.Tanh")
print(f"exit status: {known} with stablehlo.tanh; {unknown} with tf.Tanh, expected 1 and a message")
sys.exit(known == 0 and unknown != 1)
