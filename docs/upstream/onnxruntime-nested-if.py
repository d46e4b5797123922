# /// script
# dependencies = ["onnxruntime==1.31.1", "onnx==1.23.2", "numpy"]
# ///
"""ONNX Runtime puts two nested Ifs in their place, and a third one in them loses a value or ends the process.

The conditions of the first two are known; the third one's is an input, and it reads p. Both graphs are right where
ConstantFolding is disabled. Each session has a process of its own.
"""

import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

GRAPH = """
<ir_version: 8, opset_import: ["": 16]>
g (float[2] x, bool q) => (float[2] y) {
  one = Constant <value_int = 1> ()
  c = Equal(one, one)
  y = If (c) <
    then_branch = t () => (float[2] b) {
      p = Abs(x)
      m = If (c) <
        then_branch = t2 () => (float[2] END) {
          r = If (q) <
            then_branch = t3 () => (float[2] r1) { r1 = Neg(p) },
            else_branch = e3 () => (float[2] r2) { r2 = Identity(p) }>
          w = Neg(r)
          LAST
        },
        else_branch = e2 () => (float[2] v) { v = Identity(p) }>
      b = Identity(m)
    },
    else_branch = e () => (float[2] a) { a = Abs(x) }>
}
"""
GRAPHS = {"w": ("", [1, 2]), "u": ("u = Add(w, p)", [2, 4])}
"""The end of the second branch, what makes it, and the result for x = 1, 2."""

if len(sys.argv) > 1:
    end, *disabled = sys.argv[1:]
    last, expected = GRAPHS[end]
    model = onnx.parser.parse_model(GRAPH.replace("END", end).replace("LAST", last))
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, disabled_optimizers=disabled)
        y = session.run(None, {"x": np.array([1, 2], np.float32), "q": np.array(True)})[0]
    except Exception as error:
        print("raises", type(error).__name__, "…", str(error).strip()[-16:])
        sys.exit(2)
    print("gives", y)
    sys.exit(int(y.tolist() != expected))

wrong = {}
for end in GRAPHS:
    for disabled in (["ConstantFolding"], []):
        run = subprocess.run([sys.executable, __file__, end, *disabled], capture_output=True, text=True, timeout=60)
        said = run.stdout.strip() or f"ends with exit status {run.returncode}"
        print(f"{end}, {'without' if disabled else 'with'} ConstantFolding: {said}")
        wrong[end, not disabled] = run.returncode != 0
assert not wrong["w", False]
assert not wrong["u", False]
sys.exit(int(any(wrong.values())))
