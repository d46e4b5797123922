"""iree-benchmark-module on the .vmfb that `bound` calls; and a function that returns its argument."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from rnnbench.backends import Artifact, Bound, Program, Request
from rnnbench.backends.iree.compile import compile_module, flags_of
from rnnbench.backends.iree.hal_devices import runtime_tool
from rnnbench.backends.iree.runtime import EnclosedSession, IreeProgram
from rnnbench.backends.timing_tool import NoToolError, Tool
from rnnbench.rnn import draw_inputs

EMPTY = """module @rnn {
  func.func @step(%x: tensor<1x1x1xf32>) -> tensor<1x1x1xf32> {
    return %x : tensor<1x1x1xf32>
  }
}
"""
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def own_tool(program: Program, request: Request, cache: Path) -> Tool:
    if request.route != "linalg" or not isinstance(program, IreeProgram):
        raise NoToolError("called through the same runtime in the same way as iree:linalg, which is timed")
    if request.threads != 1 or request.device != "cpu":
        raise NoToolError("the tool is run on the processor alone, on one thread")
    (module,) = cache.glob("*.vmfb")
    folder = Path(tempfile.mkdtemp(prefix="inputs-", dir=cache))
    strategy = request.strategy
    inputs = {"x": draw_inputs(request.model, strategy.chunk, request.batch, 0)}
    if strategy.state == "stitched":
        size = sum(int(np.prod(shape)) for shape in request.model.state_shapes(request.batch).values())
        inputs["state"] = np.zeros(size, np.float32)
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
    command = [
        str(runtime_tool("iree-benchmark-module")),
        *(f"--module={module}", "--device=local-sync", "--function=step", "--benchmark_format=json"),
        *(f"--input=@{folder / name}.npy" for name in inputs),
    ]
    return Tool("iree-benchmark-module", "mean", lambda seconds: _run(command, seconds), _empty(request, cache))


def _run(command: list[str], seconds: float) -> float:
    output = subprocess.run(
        [*command, f"--benchmark_min_time={seconds:g}s"], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    ).stdout
    (result,) = json.loads(output[output.index("{") :])["benchmarks"]
    return float(result["real_time"]) * UNITS[result["time_unit"]]


def _empty(request: Request, cache: Path) -> Bound:
    """A call of the same kind as `bound`'s, its argument list packed beforehand."""
    compiled = compile_module(EMPTY, flags_of(request), cache / "empty")
    artifact = Artifact(
        source_digest="",
        operations={},
        lowered=compiled.lowered,
        origin="authored",
        math="exact",
    )
    nothing = IreeProgram(request, artifact, compiled.path, compiled.cached, _no_tail)
    return EnclosedSession(nothing)._bind([np.zeros((1, 1, 1), np.float32)] * 8)


def _no_tail() -> Program:
    raise NoToolError("an empty function has no ragged rest")
