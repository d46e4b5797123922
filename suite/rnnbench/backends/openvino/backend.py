"""OpenVinoBackend: the supported requests, and how a request becomes a program."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import partial
from pathlib import Path

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, Artifact, Probe, Program, Request, Support
from rnnbench.backends.shared import (
    Abilities,
    cut_matrix,
    load_or_build,
    of_one_step,
    onnx_graphs,
    overflows,
    probe_packages,
    program_folder,
    require_support,
)
from rnnbench.rnn import LAYER_PRIMITIVES

PACKAGES = ("openvino", "onnx")
ROUTES = ("onnx", "opset")
INT8_GROUP = 32
"""Elements of x or h that share a scale: the device's default."""
SATURATES = (
    "OpenVINO adds two products of an unsigned and a signed byte in 16 bits on this processor, which has no VNNI. The "
    "sum saturates, and y was off by 0.14."
)
STAYS_FLOAT = "OpenVINO quantises x and h on processors with VNNI. This one has none, and they stay float32."
NOT_ON = {
    "cuda": "OpenVINO's plugin for GPUs is for Intel's. One for NVIDIA's (openvino_contrib) must be built from source."
}
READS = {"onnx": frozenset({"onnx"}), "opset": frozenset({"tflite"})}
AUTHORS = {"onnx": LAYER_PRIMITIVES | {"while"}, "opset": LAYER_PRIMITIVES}


class OpenVinoBackend:
    name = "openvino"

    def probe(self) -> Probe:
        compilers = dict.fromkeys(ROUTES, "OpenVINO")
        probe = probe_packages(ROUTES, PACKAGES, "pip install 'rnnbench[openvino]'", compilers=compilers)
        return replace(probe, authors=AUTHORS, reads=READS, not_on=NOT_ON)

    def support(self, request: Request) -> Support:
        if reason := _unsupported(request):
            return Support("unsupported", reason)
        covers = {ACTIVATIONS, LENGTHS} if request.strategy.time == "fused" else {ACTIVATIONS}
        return Support("native", covers=frozenset(covers))

    def load(self) -> None:
        importlib.import_module("openvino")

    def build(self, request: Request, cache: Path) -> Program:
        require_support(self, request, Abilities(authors=AUTHORS, reads=READS))
        from rnnbench.backends.openvino.runtime import OpenVinoProgram

        folder = program_folder(request, cache, self.probe().versions)
        stored = load_or_build(folder, partial(_compiled, request))
        tail = partial(self.build, of_one_step(request), cache)
        return OpenVinoProgram(request, stored.artifact, folder, stored.cached, tail)


def _compiled(request: Request, folder: Path) -> Artifact:
    from rnnbench.backends.openvino.compile import compile_model

    return compile_model(request, folder)


def _unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    if request.route not in ROUTES:
        return f"openvino has the routes {', '.join(ROUTES)}, and not {request.route}."
    if request.precision.int8:
        return _not_int8(request)
    if request.precision.uniform == "float64" or (request.file is not None and "float64" in request.file.types):
        return "OpenVINO's CPU device only stores float64: it converts the model to float32 and computes in float32."
    if request.precision.uniform != "float32" and not _stores_narrow(request):
        return "The suite runs OpenVINO in float32 (INFERENCE_PRECISION_HINT=f32), and with int8 weights."
    if request.strategy.time == "fused" and request.stack.recurrent_activation != "sigmoid":
        return "OpenVINO's CPU device runs operators with other activations as a loop, which supports no hard sigmoid."
    return onnx_graphs.unsupported(request)


def _stores_narrow(request: Request) -> bool:
    """Whether it is a user's file whose arrays are float16 or bfloat16. The device computes in float32, which is
    closer."""
    return request.file is not None and request.precision.uniform in ("float16", "bfloat16")


def _not_int8(request: Request) -> str:
    """Why a stack of cells cannot have int8 weights; empty where it can."""
    if request.strategy.time == "fused":
        return "OpenVINO's CPU device makes float32 of int8 weights of its sequence operators when it compiles them."
    if request.route != "opset":
        return "The suite writes int8 weights into models of route opset; route onnx is the same device."
    model = request.stack
    if request.precision.activations == "dynamic" and min(model.input, model.output, model.hidden) < INT8_GROUP:
        return (
            f"OpenVINO quantises x and h in groups of {INT8_GROUP}, and leaves operands of fewer elements in float32."
        )
    if request.precision.activations and overflows():
        return SATURATES if request.precision.activations == "static" else STAYS_FLOAT
    if (request.strategy.time, request.strategy.state) == ("unrolled", "none"):
        return "OpenVINO 2026.4 fails to compile a constant times int8 weights, which the first step from zeros is."
    if reason := cut_matrix(request):
        return reason
    return onnx_graphs.unsupported(request)
