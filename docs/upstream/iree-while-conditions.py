# /// script
# dependencies = ["iree-base-compiler==3.13.0"]
# ///
"""iree-compile crashes on loops that end at the first of two conditions.

One carries two globals, the other a value and a reshape of it. Prints what the compiler did with each loop, and with
the same loop without its second condition. Exits with 1 where the compiler ended by a signal (3.13: SIGSEGV).
"""

import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

TWO_GLOBALS = """
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
RESHAPED = """
module {
  func.func @step(%h: tensor<4xf32>, %n: tensor<i32>) -> (tensor<1x4xf32>, tensor<4xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %y = stablehlo.constant dense<0.0> : tensor<1x4xf32>
    %r:3 = stablehlo.while(%i = %zero, %row = %y, %a = %h) : tensor<i32>, tensor<1x4xf32>, tensor<4xf32>
    cond {
      %first = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %second = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %both = stablehlo.and %first, %second : tensor<i1>
      stablehlo.return %both : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %e = stablehlo.tanh %a : tensor<4xf32>
      %f = stablehlo.reshape %e : (tensor<4xf32>) -> tensor<1x4xf32>
      stablehlo.return %j, %f, %e : tensor<i32>, tensor<1x4xf32>, tensor<4xf32>
    }
    return %r#1, %r#2 : tensor<1x4xf32>, tensor<4xf32>
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


crashed = False
for name, loop in (("two globals", TWO_GLOBALS), ("a reshape", RESHAPED)):
    two, one = status(loop), status(loop.replace("stablehlo.return %both", "stablehlo.return %first"))
    print(f"{name}: exit status with two conditions {two}, with one {one} (-11 is SIGSEGV)")
    crashed |= two < 0
sys.exit(crashed)
