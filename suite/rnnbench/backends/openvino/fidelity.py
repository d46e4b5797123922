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

import numpy as np
import openvino as ov
from openvino.tools.benchmark.benchmark import Benchmark

from rnnbench.backends.base import Program, Request
from rnnbench.backends.fidelity import Tool
from rnnbench.backends.openvino.device import config
from rnnbench.backends.openvino.runtime import OpenVinoProgram, OpenVinoSession, least_call
from rnnbench.rnn.weights import draw_inputs

MILLISECOND = 1e-3


def own_tool(program: Program, request: Request, cache: Path) -> Tool:
    assert isinstance(program, OpenVinoProgram)
    session = program.open()
    x = draw_inputs(request.model, request.strategy.chunk, request.batch, 0)
    np.copyto(session.x, session.laid(x))
    return Tool(
        "benchmark_app",
        "median",
        partial(_latency, session),
        _empty(request),
        "benchmark_app's latency is what the runtime takes inside a call: what its Python adds is outside of it",
    )


def _latency(session: OpenVinoSession, seconds: float) -> float:
    """The median latency over as many calls of the tool's synchronous loop, which feeds one input again and again."""
    request = session.requests[0]
    session.infer[0]()
    calls = max(3, int(seconds / (request.latency * MILLISECOND)))
    loop = Benchmark("CPU", 1, number_iterations=calls, api_type="sync", inference_only=True)
    latencies, _, _ = loop.sync_inference(request, _OneFrame())
    return float(statistics.median(latencies)) * MILLISECOND


class _OneFrame:
    """What the loop asks of the tool's queue of inputs where these stay as they are: how many frames a call has."""

    def get_next_batch_size(self) -> int:
        return 1


def _empty(request: Request) -> Callable[[], object]:
    parameter = ov.opset13.parameter([1], np.float32, name="x")
    model = ov.Model([ov.opset13.result(parameter)], [parameter])
    call = ov.Core().compile_model(model, "CPU", config(request.threads)).create_infer_request()
    call.set_input_tensor(ov.Tensor(np.zeros(1, np.float32)))
    return least_call(call)
