# /// script
# dependencies = ["iree-base-compiler==3.13.0"]
# ///
"""iree-compile crashes on a loop that carries two globals and ends at the first of two conditions.

Prints what the compiler did with the loop, and with the same loop without its second condition. Exits with 1 where
the compiler ended by a signal (3.13: SIGSEGV).
"""

import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

LOOP = """
module {
  ml_program.global private mutable @h(dense<0.0> : tensor<4xf32>) : tensor<4xf32>
  ml_program.global private mutable @c(dense<0.0> : tensor<4xf32>) : tensor<4xf32>
  func.func @step(%n: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %h = ml_program.global_load @h : tensor<4xf32>
    %c = ml_program.global_load @c : tensor<4xf32>
    %r:3 = stablehlo.while(%i = %zero, %a = %h, %b = %c) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    cond {
      %first = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %second = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %both = stablehlo.and %first, %second : tensor<i1>
      stablehlo.return %both : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %d = stablehlo.add %a, %b : tensor<4xf32>
      %e = stablehlo.tanh %d : tensor<4xf32>
      stablehlo.return %j, %e, %d : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    }
    ml_program.global_store @h = %r#1 : tensor<4xf32>
    ml_program.global_store @c = %r#2 : tensor<4xf32>
    return %r#1 : tensor<4xf32>
  }
}
"""
FLAGS = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
COMPILER = distribution("iree-base-compiler").locate_file("iree/compiler/_mlir_libs/iree-compile")


def status(text):
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "loop.mlir", Path(name) / "loop.vmfb"
        source.write_text(text)
        return subprocess.run([COMPILER, source, "-o", target, *FLAGS], capture_output=True, check=False).returncode


two, one = status(LOOP), status(LOOP.replace("stablehlo.return %both", "stablehlo.return %first"))
print(f"exit status with two conditions {two}, with one {one} (-11 is SIGSEGV)")
sys.exit(two < 0)
