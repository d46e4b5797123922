"""TorchBackend: the installed versions, the supported requests, and the route that builds a request."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from rnnbench.backends.base import Allocated, Probe, Program, Request, Support
from rnnbench.backends.shared import (
    CUDA,
    ENVIRONMENT,
    NO_GPU,
    PROCESSOR_AND_CUDA,
    Abilities,
    of_one_step,
    probe_packages,
    require_support,
    with_cuda,
)
from rnnbench.backends.torch.installed import built_for, cuda_lack
from rnnbench.backends.torch.support import (
    AUTHORS,
    COMPILED,
    COMPILERS,
    FORK_SAFE,
    GRAPHS,
    READS,
    TIMES,
    UPSTREAM,
    covered,
    unsupported,
)
from rnnbench.cases import STREAM


class TorchBackend:
    name = "torch"

    def probe(self) -> Probe:
        probe = probe_packages(tuple(TIMES), ("torch",), "pip install torch", slow=COMPILED, compilers=COMPILERS)
        if not probe.available:
            return replace(probe, authors=AUTHORS, reads=READS)
        return replace(probe, devices=with_cuda(cuda_lack(), built_for()), authors=AUTHORS, reads=READS, graphs=GRAPHS)

    def support(self, request: Request) -> Support:
        reason = unsupported(request)
        if reason:
            return Support("unsupported", reason, UPSTREAM.get(reason, ""))
        # A pool of compiler processes would outlive the build and be counted in it.
        environment = {"TORCHINDUCTOR_COMPILE_THREADS": "1"} if request.route in COMPILED else {}
        environment |= {**ENVIRONMENT, **FORK_SAFE} if request.device == CUDA else NO_GPU
        if request.strategy.time == "fused" and request.stack.direction == "reverse":
            reason = "nn's RNNs run forward or in both directions. x and y are flipped around the forward RNN."
            return Support("emulated", reason, environment=environment, covers=covered(request))
        return Support("native", environment=environment, covers=covered(request))

    def load(self) -> None:
        importlib.import_module("torch")

    def prepare_builds(self, route: str, device: str) -> None:
        if route in COMPILED and device != CUDA:
            importlib.import_module("rnnbench.backends.torch.toolchain").prepare_builds(route)

    def allocated(self, device: str) -> Allocated | None:
        """Bytes of torch's caching allocator that tensors take (`torch.cuda.memory_allocated` in its documentation)."""
        import torch

        return Allocated(torch.cuda.memory_allocated(0), torch.cuda.max_memory_allocated(0)) if device == CUDA else None

    def build(self, request: Request, cache: Path) -> Program:
        require_support(self, request, Abilities(PROCESSOR_AND_CUDA, AUTHORS, READS, GRAPHS))
        import torch

        from rnnbench.backends.torch import cuda
        from rnnbench.backends.torch.graph_stream import recorded
        from rnnbench.backends.torch.stream import TorchProgram

        torch.set_num_threads(request.threads)
        if request.device == CUDA:
            cuda.use_ieee()
        route = importlib.import_module(f"rnnbench.backends.torch.{request.route}")
        cached_build, open_stream = route.build(request, cache)
        return TorchProgram(
            request,
            cuda.described(request, cached_build.artifact),
            cached_build.files,
            cached_build.cached,
            open_stream if request.strategy.launch == STREAM else recorded(request, open_stream, cuda.CudaGraphs),
            lambda: self.build(of_one_step(request), cache),
        )
