"""Bound calls cost no more than careful calls by hand, in turn in one process (minutes; docs/fidelity.md).

The runtimes here have no timing tool of their own in their wheels; those that have one are in `test_fidelity.py`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LONG_S

from rnnbench.backends import registry, request_of
from rnnbench.cases import Limits, Measure, Strategy, Target, Trial
from rnnbench.fidelity.measure import RATIO
from rnnbench.plan import support
from rnnbench.rnn import Model, Weights

SCRIPT = Path(__file__).with_name("by_hand.py")
PROCESSES = 3
PROGRAMS = [
    ("onnxruntime:onnx", "fused", 1),
    ("onnxruntime:onnx", "fused", 32),
    ("jax:jit", "looped", 1),
    ("jax:jit", "looped", 32),
    ("jax:jit", "unrolled", 32),
    ("tensorflow:graph", "unrolled", 1),
    ("tensorflow:graph", "looped", 32),
    ("litert:tensorflow", "unrolled", 1),
    ("litert:tensorflow", "looped", 32),
]


@pytest.mark.parametrize("hidden", [128, 512])
@pytest.mark.parametrize(("name", "time", "chunk"), PROGRAMS)
def test_a_bound_call_costs_no_more_than_one_by_hand(name, time, chunk, hidden, tmp_path):
    target = Target(*name.split(":"))
    if lack := registry.find(target.backend).probe().lack(target.route):
        pytest.skip(lack.reason)
    model = Model(cell="lstm", input=64, hidden=hidden)
    trial = Trial(
        "by-hand",
        target,
        model,
        Strategy(time, "stitched", chunk),
        chunk,
        1,
        "float32",
        "cpu",
        1,
        0,
        Limits(),
        Measure(),
    )
    variables = support(target.backend, request_of(trial, Weights(()))).environment
    rounds = []
    for _ in range(PROCESSES):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), name, time, str(chunk), str(hidden), str(tmp_path)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
            capture_output=True,
            text=True,
            timeout=LONG_S,
        )
        assert done.returncode == 0, done.stderr
        rounds.append(json.loads(done.stdout.splitlines()[-1]))
    suite, hand = (statistics.median(figures[side] for process in rounds for figures in process) for side in (0, 1))
    ratio = statistics.median(statistics.median(mine / by_hand for mine, by_hand in process) for process in rounds)
    print(f"\n| `{name}` | {time} | {hidden} | {chunk} | {suite * 1e6:.3g} µs | {hand * 1e6:.3g} µs | {ratio:.2f} |")
    assert ratio <= RATIO
