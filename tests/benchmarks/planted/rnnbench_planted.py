"""ONNX Runtime with slowdowns planted into its calls: every call takes longer by a share of its own time.

The share is taken from the call itself, by a clock that is read before and after it. So the true ratio is known for
each call, however fast the machine is just then. Sides are alike in all else: both hold the same artifact, loaded
once, and one session for each slowdown, `base-3` without and `3` with one of 3 %.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnbench.backends.base import Arrays, Bound, Probe, Program, Request, Session, Support
from rnnbench.backends.onnxruntime import OnnxRuntimeBackend

SLOWDOWNS = (0, 1, 2, 3, 5, 10)
"""In per cent."""


class PlantedBackend:
    name = "planted"

    def __init__(self) -> None:
        self._inner = OnnxRuntimeBackend()
        self._program: Program | None = None

    def probe(self) -> Probe:
        routes = [f"{prefix}{share}" for prefix in ("base-", "") for share in SLOWDOWNS]
        return replace(self._inner.probe(), routes=tuple(routes))

    def support(self, request: Request) -> Support:
        return self._inner.support(self._real(request))

    def load(self) -> None:
        self._inner.load()

    def build(self, request: Request, cache: Path) -> PlantedProgram:
        if self._program is None:
            self._program = self._inner.build(self._real(request), cache)
        share = 0.0 if request.route.startswith("base-") else int(request.route) / 100
        return PlantedProgram(self._program, share)

    def _real(self, request: Request) -> Request:
        return replace(request, route=self._inner.probe().routes[0])


class PlantedProgram:
    def __init__(self, inner: Program, share: float) -> None:
        self._inner, self._share = inner, share
        self.signature, self.artifact, self.cached = inner.signature, inner.artifact, inner.cached
        self.files = inner.files

    @property
    def tail_build_s(self) -> float | None:
        return self._inner.tail_build_s

    def open(self) -> PlantedSession:
        return PlantedSession(self._inner.open(), self._share)

    def close(self) -> None:
        self._inner.close()


class PlantedSession:
    def __init__(self, inner: Session, share: float) -> None:
        self._inner, self._share = inner, share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def step(self, inputs: Arrays) -> Arrays:
        before = time.perf_counter_ns()
        outputs = self._inner.step(inputs)
        linger(before, self._share)
        return outputs

    def bind(self, ring: Sequence[Arrays]) -> PlantedBound:
        return PlantedBound(self._inner.bind(ring), self._share)


class PlantedBound:
    def __init__(self, inner: Bound, share: float) -> None:
        self._inner, self._share = inner, share
        self.sync, self.output = inner.sync, inner.output

    def __call__(self) -> None:
        before = time.perf_counter_ns()
        self._inner()
        self._inner.sync()
        linger(before, self._share)


def linger(before: int, share: float) -> None:
    """Be busy for `share` of the time since `before`."""
    now = time.perf_counter_ns()
    end = now + (now - before) * share
    while time.perf_counter_ns() < end:
        pass
