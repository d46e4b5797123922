"""A backend whose routes die: `dying:check.os-exit-0` ends its process in the conformance checks, and so on.

A route is a stage and one of the ways in `ways_of_dying`. The route `honest` does nothing of the kind.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from honest_adapter import HonestBound, HonestSession
from rnnbench_fake import FakeBackend
from ways_of_dying import WAYS, GoOn, go_on

from rnnbench.backends.base import Arrays, Probe, Request, Support

WORKER_STAGES = {
    "build": "Build",
    "load": "Load",
    "check": "RunChecks",
    "prepare": "Prepare",
    "state-copy": "SampleStateCopy",
    "bound": "SamplePath bound",
    "public": "SamplePath public",
    "cold": "SamplePath cold",
    "paced": "SamplePath paced",
    "verify": "Verify",
}
"""The stages of a trial's worker, and what it carries out in each."""
STAGES = ("support", "import", *WORKER_STAGES)
PROBE = "RNNBENCH_DYING_PROBE"
"""A variable with the way in which `probe` dies: a probe is the backend's, and no single route's."""
IMPORT = "RNNBENCH_DYING_IMPORT"


def _stage() -> str:
    """What the worker carries out now, as its own frames on the stack say."""
    frame = sys._getframe(1)
    while frame is not None:
        command = frame.f_locals.get("command")
        if command is not None and frame.f_code.co_filename.endswith("trial_worker.py"):
            return f"{type(command).__name__} {getattr(command, 'path', '')}".strip()
        frame = frame.f_back
    return ""


def _die(route: str, stage: str) -> Any:
    """What the way of the route returns, where the route dies in this stage."""
    of_route, _, way = route.partition(".")
    return WAYS[way].does() if of_route == stage else go_on


class _Dying:
    """Dies once, in the stage of its route, if the worker is in it."""

    def __init__(self, route: str) -> None:
        self.stage, _, self._way = route.partition(".")
        self._died = False

    def __call__(self, *stages: str) -> Any:
        if self._died or self.stage not in stages or _stage() != WORKER_STAGES[self.stage]:
            return go_on
        self._died = True
        return WAYS[self._way].does()


class DyingBackend(FakeBackend):
    name = "dying"

    def probe(self) -> Probe:
        if way := os.environ.get(PROBE):
            odd = WAYS[way].does()
            if not isinstance(odd, GoOn):
                return odd
        return Probe(routes=("honest", *(f"{stage}.{way}" for stage in STAGES for way in WAYS)))

    def support(self, request: Request) -> Support:
        if request.model.cell == "counter":
            return Support("unsupported", "the dying have no dispatch floor")
        odd = _die(request.route, "support")
        if not isinstance(odd, GoOn):
            return odd
        stage, _, way = request.route.partition(".")
        return Support("native", environment={IMPORT: way} if stage == "import" else {})

    def load(self) -> None:
        if way := os.environ.get(IMPORT):
            WAYS[way].does()

    def build(self, request: Request, cache: Path) -> Any:
        dying = _Dying(request.route)
        odd = dying("build")
        if not isinstance(odd, GoOn):
            return odd
        program = super().build(request, cache)
        program.dying = dying
        program.open = lambda: _open(program)
        return program


def _open(program: Any) -> Any:
    odd = program.dying("load")
    return DyingSession(program) if isinstance(odd, GoOn) else odd


class DyingSession(HonestSession):
    def step(self, inputs: Arrays) -> Any:
        odd = self._program.dying("check", "public")
        return super().step(inputs) if isinstance(odd, GoOn) else odd

    def bind(self, ring: Any) -> Any:
        odd = self._program.dying("prepare")
        return super().bind(ring) if isinstance(odd, GoOn) else odd

    def get_state(self) -> Any:
        odd = self._program.dying("state-copy")
        return super().get_state() if isinstance(odd, GoOn) else odd

    def _bind(self, ring: list[np.ndarray]) -> HonestBound:
        return DyingBound(self, ring)


class DyingBound(HonestBound):
    def __call__(self) -> Any:
        odd = self.session._program.dying("bound", "cold", "paced")
        return super().__call__() if isinstance(odd, GoOn) else odd

    def output(self) -> Any:
        odd = self.session._program.dying("verify")
        return super().output() if isinstance(odd, GoOn) else odd
