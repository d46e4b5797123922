"""The loop of benchmark_app, of OpenVINO's wheel, on the compiled model that `bound` calls; and a call that copies one
number.

The command itself takes no part: it runs for whole seconds, and an exported model it refuses unless it may compile it
anew. The latency that it reports is the runtime's own, taken around the inference alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino.tools.benchmark.benchmark import Benchmark

from rnnbench.backends.base import Program, Request
from rnnbench.backends.openvino import device
from rnnbench.backends.openvino.runtime import OpenVinoProgram, inference
from rnnbench.backends.shared.onnx_graphs import NEXT
from rnnbench.backends.timing_tool import Tool
from rnnbench.rnn import draw_inputs

MILLISECOND = 1e-3


def own_tool(program: Program, request: Request, cache: Path) -> Tool:
    assert isinstance(program, OpenVinoProgram)
    session = program.open()
    np.copyto(session.x, session.laid(draw_inputs(request.model, request.strategy.chunk, request.batch, 0)))
    return Tool(
        "benchmark_app",
        "median",
        partial(_latency, device.Model(program.folder, request).request(session.arrays(0))),
        _empty(program, cache),
        "benchmark_app's latency is what the runtime takes inside a call: what its Python adds is outside of it",
    )


def _latency(request: Any, seconds: float) -> float:
    """The median latency over as many calls of the tool's synchronous loop, which feeds one input again and again."""
    request.infer()
    calls = max(3, int(seconds / (request.latency * MILLISECOND)))
    loop = Benchmark("CPU", 1, number_iterations=calls, api_type="sync", inference_only=True)
    latencies, _, _ = loop.sync_inference(request, _OneFrame())
    return float(statistics.median(latencies)) * MILLISECOND


class _OneFrame:
    """What the loop asks of the tool's queue of inputs where these stay as they are: how many frames a call has."""

    def get_next_batch_size(self) -> int:
        return 1


def _empty(program: OpenVinoProgram, cache: Path) -> Callable[[], object]:
    """A call, through the same API, of a model that returns its inputs: as many as the program has, of one number."""
    names = [name for name in program.compiled.shapes if name != "y" and not name.startswith(NEXT)]
    parameters = [ov.opset13.parameter([1], np.float32, name=name) for name in names]
    for name, parameter in zip(names, parameters, strict=True):
        parameter.output(0).set_names({name})
    folder = cache / "empty"
    folder.mkdir(exist_ok=True)
    device.save(ov.Model([ov.opset13.result(parameter) for parameter in parameters], parameters), folder)
    model = type(program.compiled)(folder, program.request)
    request = model.request({name: np.zeros(1, np.float32) for name in names})
    return inference(request)
