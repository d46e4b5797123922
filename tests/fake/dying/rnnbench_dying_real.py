"""ONNX Runtime's adapter, whose routes die as those of `dying` do: with a runtime's threads and handlers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnbench_dying import DyingBackend, _Dying
from ways_of_dying import GoOn

from rnnbench.backends.base import Arrays, Probe, Request, Support
from rnnbench.backends.onnxruntime.backend import OnnxRuntimeBackend

ROUTE = "onnx"


class RealDyingBackend(DyingBackend):
    name = "dying-real"

    def __init__(self) -> None:
        self._real = OnnxRuntimeBackend()

    def probe(self) -> Probe:
        return replace(super().probe(), versions=self._real.probe().versions)

    def support(self, request: Request) -> Support:
        odd = super().support(request)
        if not isinstance(odd, Support) or odd.level != "native":
            return odd
        real = self._real.support(replace(request, route=ROUTE))
        return replace(real, environment={**real.environment, **odd.environment})

    def load(self) -> None:
        super().load()
        self._real.load()

    def build(self, request: Request, cache: Path) -> Any:
        dying = _Dying(request.route)
        odd = dying("build")
        if not isinstance(odd, GoOn):
            return odd
        program = self._real.build(replace(request, route=ROUTE), cache)
        return _Program(program, dying)


class _Wrapper:
    """Has what is wrapped, but for the methods of its class."""

    def __init__(self, wrapped: Any, dying: _Dying) -> None:
        self._wrapped = wrapped
        self._dying = dying

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class _Program(_Wrapper):
    def open(self) -> Any:
        odd = self._dying("load")
        return _Session(self._wrapped.open(), self._dying) if isinstance(odd, GoOn) else odd


class _Session(_Wrapper):
    def step(self, inputs: Arrays) -> Any:
        odd = self._dying("check", "public")
        return self._wrapped.step(inputs) if isinstance(odd, GoOn) else odd

    def bind(self, ring: Any) -> Any:
        odd = self._dying("prepare")
        return _Bound(self._wrapped.bind(ring), self._dying) if isinstance(odd, GoOn) else odd

    def get_state(self) -> Any:
        odd = self._dying("state-copy")
        return self._wrapped.get_state() if isinstance(odd, GoOn) else odd


class _Bound(_Wrapper):
    def __call__(self) -> Any:
        odd = self._dying("bound", "cold", "paced")
        return self._wrapped() if isinstance(odd, GoOn) else odd

    def output(self) -> Any:
        odd = self._dying("verify")
        return self._wrapped.output() if isinstance(odd, GoOn) else odd
