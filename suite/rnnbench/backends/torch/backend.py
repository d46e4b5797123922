"""TorchBackend: the installed versions, the supported requests, and the route that builds a request."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from rnnbench.backends.base import Probe, Program, Request, Support
from rnnbench.backends.shared import of_one_step, probe_packages, require_support
from rnnbench.backends.torch.support import AUTHORS, COMPILED, READS, TIMES, UPSTREAM, covered, unsupported


class TorchBackend:
    name = "torch"

    def probe(self) -> Probe:
        probe = probe_packages(tuple(TIMES), ("torch",), "pip install torch", slow=COMPILED)
        return replace(probe, authors=AUTHORS, reads=READS)

    def support(self, request: Request) -> Support:
        reason = unsupported(request)
        if reason:
            return Support("unsupported", reason, UPSTREAM.get(reason, ""))
        # A pool of compiler processes would outlive the build and be counted in it.
        environment = {"TORCHINDUCTOR_COMPILE_THREADS": "1"} if request.route in COMPILED else {}
        if request.strategy.time == "fused" and request.stack.direction == "reverse":
            reason = "nn's RNNs run forward or in both directions. x and y are flipped around the forward RNN."
            return Support("emulated", reason, environment=environment, covers=covered(request))
        return Support("native", environment=environment, covers=covered(request))

    def load(self) -> None:
        importlib.import_module("torch")

    def build(self, request: Request, cache: Path) -> Program:
        require_support(self, request, authors=AUTHORS, reads=READS)
        import torch

        from rnnbench.backends.torch.stream import TorchProgram

        torch.set_num_threads(request.threads)
        route = importlib.import_module(f"rnnbench.backends.torch.{request.route}")
        cached_build, open_stream = route.build(request, cache)
        return TorchProgram(
            request,
            cached_build.artifact,
            cached_build.files,
            cached_build.cached,
            open_stream,
            lambda: self.build(of_one_step(request), cache),
        )
