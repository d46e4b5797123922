"""TvmBackend: its versions, what each route supports, and how a request becomes a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rnnbench.backends.base import ACTIVATIONS, Lack, Probe, Program, Request, Support
from rnnbench.backends.shared import (
    CUDA,
    PROCESSOR_AND_CUDA,
    VNNI,
    Abilities,
    cut_matrix,
    probe_packages,
    require_support,
    with_cuda,
)
from rnnbench.backends.tvm import cuda_libraries, imported
from rnnbench.backends.tvm.framework import PACKAGES, import_tvm
from rnnbench.backends.tvm.packing import FORMATS, fewest_blocks, layout, size
from rnnbench.backends.tvm.persistent import support as persistent
from rnnbench.devices import VARIABLES
from rnnbench.measure import processor_features
from rnnbench.rnn import LAYER_PRIMITIVES, LINEAR_PRIMITIVES, runs_together

ROUTES = ("relax", "tir", *imported.PACKAGES)
"""The first is the default. It is what TVM's own pipeline makes, and not the kernel that is written in this suite."""
COMPILERS = dict.fromkeys(("relax", *imported.PACKAGES), "Relax")
"""`Probe.compilers`. A kernel has none of Relax's passes."""
ON_CUDA = ("relax", "tir")
"""Routes with programs for NVIDIA's GPUs."""
READS = {"torch": frozenset({"pt2"}), "onnx": frozenset({"onnx"})}
COVERS = frozenset({ACTIVATIONS})
AUTHORS = {"relax": LAYER_PRIMITIVES, "onnx": LAYER_PRIMITIVES - LINEAR_PRIMITIVES}
WIDEST = 16
"""Lanes of the widest vectors there are."""
GATES_AT_MOST = 4
"""Gates of a cell, each of which a kernel pads to whole vectors."""
MAX_DEPTH = 1000
"""Levels of a Relax function that calls itself. Each takes some of the C stack, and 3,000 overflow a stack of 8 MiB."""
MAX_COPIES = 512
"""Copies of the body in one program. With more, a build takes minutes (docs/backends/tvm.md has the figures)."""


class TvmBackend:
    """TVM on the processor and, by Relax and by a kernel, on CUDA, in float32; kernels also with narrower weights."""

    name = "tvm"

    def probe(self) -> Probe:
        install = "pip install 'rnnbench[tvm]'"
        probe = probe_packages(ROUTES, PACKAGES, install, by_route=imported.PACKAGES, compilers=COMPILERS)
        lack = cuda_libraries.lack() if probe.available else Lack(probe.reason, probe.install)
        return replace(probe, authors=AUTHORS, reads=READS, devices=with_cuda(lack, cuda_libraries.BUILT_FOR))

    def support(self, request: Request) -> Support:
        reason, upstream = _unsupported(request)
        if reason:
            return Support("unsupported", reason, upstream)
        environment = {"TVM_NUM_THREADS": str(request.threads)}
        if request.threads > 1:
            environment["TVM_BIND_THREADS"] = "0"  # TVM binds them to the first cores, whichever the worker has.
        if request.device == CUDA:
            environment |= {**VARIABLES, **cuda_libraries.variables()}
        if request.route in imported.PACKAGES:
            reason = imported.stand_ins(request)
            return Support("emulated" if reason else "native", reason, environment=environment, covers=COVERS)
        if request.strategy.state == "stateful":
            reason = "TVM's programs keep no state: they write it into buffers that the session owns."
            return Support("emulated", reason, environment=environment, covers=COVERS)
        return Support("native", environment=environment, covers=COVERS)

    def load(self) -> None:
        import_tvm()

    def build(self, request: Request, cache: Path) -> Program:
        """Compile for this machine's processor or GPU, or load what an earlier build left under `cache`."""
        require_support(self, request, Abilities(PROCESSOR_AND_CUDA, AUTHORS, READS))
        self.load()
        if request.route == "tir" and request.device == CUDA:
            from rnnbench.backends.tvm.persistent.program import build_persistent

            return build_persistent(request, cache)
        if request.route == "tir":
            from rnnbench.backends.tvm.tir_program import build_tir

            return build_tir(request, cache)
        if request.route in imported.PACKAGES:
            from rnnbench.backends.tvm.imported_program import build_imported

            return build_imported(request, cache)
        from rnnbench.backends.tvm.relax_program import build_relax

        return build_relax(request, cache)


def _unsupported(request: Request) -> tuple[str, str]:
    """Why a request cannot be met, and the upstream issue, if there is one; empty where it can."""
    reason = _unsupported_by_all(request) or _too_large(request)
    if not reason and request.route in imported.PACKAGES:
        return imported.unsupported(request)
    if not reason and request.route == "tir" and request.device == CUDA:
        return persistent.unsupported(request), ""
    return reason, ""


def _unsupported_by_all(request: Request) -> str:
    """Why no route has a program for a request; empty where one may."""
    strategy = request.strategy
    if request.route not in ROUTES:
        return f"TVM has the routes {', '.join(ROUTES)} here, and not {request.route}."
    if request.device == CUDA and request.route not in ON_CUDA:
        return f"The programs of {request.route} are built for the processor here; on cuda use {' or '.join(ON_CUDA)}."
    if request.precision.uniform != "float32" and (reason := _not_narrow(request)):
        return reason
    if strategy.time == "fused" and request.route not in imported.PACKAGES:
        return (
            "Relax has no RNN operator, and topi.nn.lstm is a te.scan, which te.create_prim_func refuses "
            "(Unsupported Operation: te.ScanOp)."
        )
    is_known = strategy.time.partition(":")[0] in ("fused", "looped", "unrolled") or runs_together(strategy.time)
    if request.file is None and not is_known:
        return f"A program advances time looped or unrolled here, and not {strategy.time}."
    return _too_many_threads(request)


def _not_narrow(request: Request) -> str:
    """Why a program cannot be in another precision than float32; empty where it can."""
    dtype = request.precision.uniform or request.precision.int8
    if request.file is not None:
        return ""
    if request.route != "tir" or request.device == CUDA:
        return f"Programs of {request.route} on {request.device} compute in float32 here, and in no other precision."
    if dtype not in FORMATS:
        return f"Kernels have the precisions {', '.join(FORMATS)} here, and no other."
    if request.precision.int8 and request.stack.cell == "counter":
        return "A counter has no weights."
    if FORMATS[dtype].of_bytes and not processor_features() & VNNI:
        return "The kernel's products of bytes are instructions that this processor lacks (AVX512-VNNI or AVX-VNNI)."
    if FORMATS[dtype].together > 1 and request.stack.directions == 2 and request.stack.layers > 1:
        return (
            "A layer that reads two directions has no weights in bfloat16 here: they are stored for one row of inputs."
        )
    return cut_matrix(request) if request.precision.int8 else ""


def _too_many_threads(request: Request) -> str:
    """Why a program cannot be shared by as many threads; empty where it can."""
    if request.threads == 1:
        return ""
    if request.route != "tir" or request.device == CUDA:
        return "Programs are serial here: a step is one product, and TVM would start its threads anew for each."
    blocks = fewest_blocks(request.stack, request.precision.uniform or request.precision.int8 or "")
    if request.threads > blocks:
        return f"A step has {blocks} blocks of weights to share, which is fewer than {request.threads} threads."
    return ""


def _too_large(request: Request) -> str:
    """Which limit a request exceeds; empty where it exceeds none."""
    network, strategy = request.model, request.strategy
    together = runs_together(strategy.time)
    steps = 1 if request.file is not None else strategy.copies or strategy.chunk
    bodies = (1 if together else steps) * sum(bool(layer.states) for layer in network.graph)
    if bodies > MAX_COPIES:
        return f"A program of {bodies} copies of a step takes minutes to compile; at most {MAX_COPIES} are built."
    depth = strategy.chunk // steps
    if request.route == "relax" and depth > MAX_DEPTH:
        return f"Relax loops by recursion, and {depth} levels could overflow the stack; at most {MAX_DEPTH} are built."
    widest = network.width + network.input + max(layer.projected for layer in network.graph) + GATES_AT_MOST * WIDEST
    weights = size(layout(request.stack, WIDEST)) if request.route == "tir" else network.weight_count
    elements = max(weights, (strategy.chunk + 1) * request.batch * widest)
    if elements > persistent.MAX_ELEMENTS:
        return f"An array of {elements} elements is beyond the 32-bit offsets of a kernel."
    return ""
