"""IREE as a backend: what is installed, what it can do, and how a request becomes a program."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import replace
from functools import partial
from pathlib import Path

from rnnbench.backends.base import ACTIVATIONS, Allocated, Artifact, Lack, Probe, Program, Request, Support
from rnnbench.backends.iree import imported, program
from rnnbench.backends.iree.compile import DIRECT, compile_module, flags_of
from rnnbench.backends.iree.hal_devices import HAL_DEVICES, device_notes, devices
from rnnbench.backends.iree.imported_program import build_imported
from rnnbench.backends.iree.runtime import IreeProgram, allocated, environment
from rnnbench.backends.shared import Abilities, of_one_step, probe_packages, require_support
from rnnbench.backends.tensorflow import ml_program
from rnnbench.rnn import LAYER_PRIMITIVES

PACKAGES = ("iree-base-compiler", "iree-base-runtime")
AUTHORED = "linalg"
WRITTEN_HERE = (AUTHORED, DIRECT)
ROUTES = (*WRITTEN_HERE, *imported.PACKAGES)
COVERS = frozenset({ACTIVATIONS})
READS = {
    "onnx": frozenset({"onnx"}),
    "stablehlo": frozenset({"stablehlo"}),
    "torch": frozenset({"pt2"}),
    "tensorflow": frozenset({"savedmodel"}),
}
TYPED = ("onnx", "stablehlo", "torch")
"""Routes that run files whose arrays are not float32."""
AUTHORS = {
    **dict.fromkeys(WRITTEN_HERE, LAYER_PRIMITIVES),
    "stablehlo": LAYER_PRIMITIVES | {"while"},
    "onnx": LAYER_PRIMITIVES,
    "tensorflow": ml_program.AUTHORS,
}
"""StableHLO is JAX's, whose function is written over the primitives too."""


class IreeBackend:
    name = "iree"

    def probe(self) -> Probe:
        install = f"pip install {' '.join(PACKAGES)}"
        compilers = dict.fromkeys(ROUTES, "IREE")
        probe = probe_packages(ROUTES, PACKAGES, install, by_route=imported.PACKAGES, compilers=compilers)
        nothing = Lack(probe.reason, probe.install)
        return replace(
            probe,
            authors=AUTHORS,
            reads=READS,
            devices=devices() if probe.available else dict.fromkeys(HAL_DEVICES, nothing),
        )

    def support(self, request: Request) -> Support:
        if reason := _unsupported(request):
            return Support("unsupported", reason)
        variables = {**environment(request), **imported.environment(request)}
        if request.route not in WRITTEN_HERE and (reason := imported.stand_ins(request)):
            return Support("emulated", reason, environment=variables, covers=COVERS)
        return Support("native", environment=variables, covers=COVERS)

    def load(self) -> None:
        importlib.import_module("iree.runtime")

    def allocated(self, device: str) -> Allocated | None:
        """Bytes of the allocator of IREE's device, in the device's own memory."""
        return allocated(device)

    def build(self, request: Request, cache: Path) -> Program:
        require_support(self, request, Abilities(HAL_DEVICES, AUTHORS, READS))
        if request.route not in WRITTEN_HERE:
            return build_imported(request, cache)
        source = program.module(request)
        flags = flags_of(request)
        compiled = compile_module(source, flags, cache, request.strategy.time)
        artifact = Artifact(
            source_digest=hashlib.sha256(source.encode()).hexdigest(),
            operations=compiled.operations,
            lowered=compiled.lowered,
            origin="authored",
            math="exact",
            flags=flags,
            notes=_notes(request),
        )
        tail = partial(self.build, of_one_step(request), cache)
        return IreeProgram(request, artifact, compiled.path, compiled.cached, tail)


def _unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    if request.route not in ROUTES:
        return f"IREE has the routes {', '.join(ROUTES)} here, and not {request.route}."
    if request.precision.uniform != "float32" and (request.route not in TYPED or request.file is None):
        routes = ", ".join(f"iree:{route}" for route in TYPED)
        return f"Programs are in float32 here, and in no other precision, but for users' files on {routes}."
    if request.threads != 1 and request.device != "cpu":
        return f"On {request.device} a program is called from one thread, and target.threads is for the processor."
    if request.route == DIRECT and request.device == "cpu":
        return "Reused command buffers are right on the processor (iree:linalg). This route is for other devices."
    if request.strategy.time == "fused" and request.route in WRITTEN_HERE:
        return "IREE has no RNN operator: no input dialect (linalg, tensor, scf, StableHLO, TOSA, torch) has one."
    return "" if request.route in WRITTEN_HERE else imported.unsupported(request)


def _notes(request: Request) -> tuple[str, ...]:
    notes = ["The gate math of a step is one elementwise operation."]
    if not request.model.is_exact:
        notes.append("The input projection of all steps of a call is one product, outside any loop.")
    if not request.model.is_exact and request.device == "cpu":
        notes.append("Weights are packed for the kernel of the product when a session is opened (data tiling).")
    if request.route == DIRECT:
        notes.append("Command buffers are recorded in each call (--iree-hal-indirect-command-buffers=false).")
    elif request.strategy.state != "none":
        notes.append("The state of all layers is one flat array, so command buffers are recorded once and used again.")
    notes.append("Functions name their device; otherwise each pass of a loop copies all of y.")
    return (*notes, *device_notes(request))
