# /// script
# dependencies = ["onnxruntime==1.30.0", "onnx==1.23.2", "numpy"]
# [tool.rnnbench]
# earlier = ["onnxruntime==1.29.0", "numpy"]
# ///
"""ONNX Runtime 1.30 takes longer than 1.29 for each run_with_iobinding, so one step of a small GRU is slower.

python onnxruntime-gru-step.py EARLIER_PYTHON [PAIRS]
EARLIER_PYTHON is the interpreter of an environment with the earlier release, and PAIRS is 8 or more. New processes of
both releases take turns. Each times the step of a GRU, called from Python as usual, and called without the method that
Python has around it. Exits with 1 where the usual call takes longer, with 0 where it does not, and with 3 where the
interval says neither.
"""

import subprocess
import sys
import tempfile
import time
from functools import partial
from math import comb
from statistics import median

import numpy as np

INPUTS, UNITS = 64, 96
PAIRS = 40
SLOWER = 1.01  # Ratio of the times from which on the later release counts as slower.


def save_gru(path):
    from onnx import TensorProto, helper, numpy_helper, save_model

    shapes = {"x": (1, 1, INPUTS), "h": (1, 1, UNITS), "y": (1, 1, 1, UNITS), "h_next": (1, 1, UNITS)}
    x, h, *outputs = (helper.make_tensor_value_info(*each[:1], TensorProto.FLOAT, *each[1:]) for each in shapes.items())
    sizes = {"W": (1, 3 * UNITS, INPUTS), "R": (1, 3 * UNITS, UNITS), "B": (1, 6 * UNITS)}
    draw = np.random.default_rng(0).standard_normal
    weights = [numpy_helper.from_array(draw(size, np.float32) / 10, name) for name, size in sizes.items()]
    names = ["x", "W", "R", "B", "", "h"], ["y", "h_next"]
    gru = helper.make_node("GRU", *names, hidden_size=UNITS, linear_before_reset=1)
    graph = helper.make_graph([gru], "step", [x, h], outputs, weights)
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def time_calls(path):
    """Print the release and µs per call, the usual one and the other: medians of 200 blocks of 100 calls, in turn."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    binding, arrays = session.io_binding(), []
    for bind, arguments in (
        (binding.bind_ortvalue_input, session.get_inputs()),
        (binding.bind_ortvalue_output, session.get_outputs()),
    ):
        for argument in arguments:
            arrays.append(onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(argument.shape, np.float32)))
            bind(argument.name, arrays[-1])
    calls = (
        partial(session.run_with_iobinding, binding),
        partial(session._sess.run_with_iobinding, binding._iobinding, None),
    )
    blocks = [], []
    for _ in range(200):
        for call, seconds in zip(calls, blocks, strict=True):
            start = time.perf_counter()
            for _ in range(100):
                call()
            seconds.append(time.perf_counter() - start)
    print(onnxruntime.__version__, *(1e6 * median(seconds) / 100 for seconds in blocks))


def timed(python, path):
    """Of a new process: the release, and µs per call of both kinds."""
    done = subprocess.run([python, __file__, "--time", path], stdout=subprocess.PIPE, text=True, check=True)
    release, *times = done.stdout.split()
    return release, [float(each) for each in times]


def interval(values):
    """Of their median, with a chance of 99 %: order statistics. Of 40 values the 12th and the 29th."""
    chances = [sum(comb(len(values), k) for k in range(rank)) / 2 ** len(values) for rank in range(len(values))]
    rank = max(1, sum(chance <= 0.005 for chance in chances) - 1)
    return sorted(values)[rank - 1], sorted(values)[-rank]


def compare(earlier, later, pairs):
    sides = earlier, later
    found = []
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        save_gru(file.name)
        for number in range(pairs):
            order = (0, 1) if number % 2 else (1, 0)
            pair = {side: timed(sides[side], file.name) for side in order}
            found.append((pair[0], pair[1]))
    (before, _), (after, _) = found[0]
    print(f"a step of a GRU of {UNITS} units, {after} beside {before}, {pairs} pairs of processes, intervals of 99 %")
    for call, name in ((1, "without its method in Python"), (0, "run_with_iobinding")):
        times = [(old[call], new[call]) for (_, old), (_, new) in found]
        before, after = (median(each) for each in zip(*times, strict=True))
        ratios = [new / old for old, new in times]
        low, high = interval(ratios)
        print(f"{name}: {before:.2f} and {after:.2f} µs, ratio {median(ratios):.3f} ({low:.3f} to {high:.3f})")
    return 1 if low > SLOWER else 0 if high < SLOWER else 3


if len(sys.argv) < 2:
    print(__doc__)
    sys.exit(2)
if sys.argv[1] == "--time":
    time_calls(sys.argv[2])
else:
    sys.exit(compare(sys.argv[1], sys.executable, max(8, int(sys.argv[2])) if len(sys.argv) > 2 else PAIRS))
