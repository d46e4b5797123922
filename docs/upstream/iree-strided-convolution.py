# /// script
# dependencies = ["iree-base-compiler==3.13.0"]
# ///
"""iree-compile refuses a strided convolution with one result where elements of its input are left over.

A kernel of 3 and a stride of 2: one result needs 3 elements. With 4, the fourth is left over.
"""

import sys

from iree.compiler import CompilerToolError, compile_str

PROGRAM = """
func.func @main(%x: tensor<1x1xSIZExf32>, %w: tensor<1x1x3xf32>) -> tensor<1x1xRESULTSxf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x1xSIZExf32>, tensor<1x1x3xf32>) -> tensor<1x1xRESULTSxf32>
  return %y : tensor<1x1xRESULTSxf32>
}
"""


def problem(size):
    text = PROGRAM.replace("SIZE", str(size)).replace("RESULTS", str((size - 3) // 2 + 1))
    try:
        compile_str(text, target_backends=["llvm-cpu"], input_type="stablehlo")
    except CompilerToolError as error:
        return next(line for line in str(error).splitlines() if "error:" in line)
    return ""


found = {size: problem(size) for size in (3, 4, 5, 6)}
for size, says in found.items():
    print(f"{size} elements: {says or 'compiles'}")
sys.exit(int(any(found.values())))
