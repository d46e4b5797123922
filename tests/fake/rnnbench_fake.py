"""A fake backend for the harness's own logic: the reference in float32, and on each route but one a way to fail.

It is a third party's backend in all but its arithmetic: an entry point in a distribution of its own, found without a
change to the suite. Its routes are named for what goes wrong on them.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from faulty_leavings import flush_denormals
from honest_adapter import HonestBound, HonestProgram, HonestSession

from rnnbench.backends.base import Arrays, BuildError, Probe, ProgramFiles, Request, Support
from rnnbench.backends.shared import of_one_step

ROUTES = (
    "honest",
    "support-raises",
    "import-speeds-the-clock",
    "build-fails",
    "build-raises",
    "build-hangs",
    "build-prints",
    "build-segfaults",
    "load-segfaults",
    "check-hangs",
    "check-raises",
    "check-grows",
    "wrong-third-step",
    "wrong-bound",
    "wrong-once-timed",
    "wrong-public-once-timed",
    "sample-segfaults",
    "sample-raises",
    "sample-exits",
    "sample-slows-the-clock",
    "sample-turns-the-clock-back",
    "sample-grows",
    "holds-much",
    "support-exits",
    "support-is-none",
    "support-is-odd",
    "build-exits",
    "build-ends-the-process",
    "build-keeps-a-store",
    "build-returns-none",
    "build-hoists-too-much",
    "build-is-negative",
    "build-is-of-no-form",
    "build-is-of-unknown-origin",
    "check-ends-the-process",
    "check-exits",
    "check-closes-its-descriptors",
    "leaves-denormals-flushed",
    "leaves-errors-raised",
    "sample-leaks-descriptors",
    "ends-when-told",
)
HANGS_IN = "hangs-in-"
"""Routes whose worker hangs in one of its commands, or in one latency path."""
HANGING_COMMANDS = ("import_framework", "load", "prepare", "sample_state_copy", "verify")
HANGING_PATHS = ("bound", "public", "cold", "paced")
ROUTES += tuple(HANGS_IN + where for where in (*HANGING_COMMANDS, *HANGING_PATHS))
SLOWDOWN, WRONG, VERSION = "RNNBENCH_FAKE_SLOWDOWN", "RNNBENCH_FAKE_WRONG", "RNNBENCH_FAKE_VERSION"
"""Variables that make one environment differ from another."""
STORE = "RNNBENCH_FAKE_STORE"
"""A variable with the folder in which the route `build-keeps-a-store` keeps what it compiled, for later builds."""
TOLD = "RNNBENCH_FAKE_TOLD"
"""A variable with a file. Once it is there, the next bound call of the route `ends-when-told` removes it and ends its
process by the signal whose number it has; it raises where that is 0."""
CONVERTER = "tabnanny"
WRONG_ARTIFACTS: dict[str, dict[str, object]] = {
    "build-hoists-too-much": {"hoisted": 5},
    "build-is-negative": {"nbytes": -1},
    "build-is-of-no-form": {"lowered": "vectorised 4"},
    "build-is-of-unknown-origin": {"origin": "elsewhere"},
}
CLOCKS: dict[str, Callable[[int, int], int]] = {
    "sample-slows-the-clock": lambda reading, passed: passed // 20,
    "sample-turns-the-clock-back": lambda reading, passed: passed - 5_000_000 * (reading % 2),
}
"""What the clocks of these routes show, from the start of a block on: by the number of the reading, and the nanoseconds
that passed."""
HELD = 8 << 20
"""Numbers of eight bytes, 64 MiB, that a program of `holds-much` holds, its tail apart.

A program of `sample-grows` adds twice as many in a call."""
FAULTY_CHUNK = 4
"""On the routes `sample-grows` and `sample-raises`, programs of other chunks are sound."""
HANGING, PREPARES = "the fake compiler hangs", "the fake prepares builds in process"
"""What it leaves in its worker's log."""
_opened_in = 0
"""The process in which a program was opened, or the parent of a fork in which one was."""
_lost_in = 0
"""The process in which the fake's device was lost: every later call of any program fails there."""


class FakeBackend:
    name = "fake"

    def probe(self) -> Probe:
        return Probe(routes=ROUTES, versions={"rnnbench-fake": os.environ.get(VERSION, "1.0")})

    def support(self, request: Request) -> Support:
        if request.route == "support-raises":
            raise KeyError("a bug of the adapter's")
        if request.route == "support-exits":
            raise SystemExit("enough")
        if request.route == "support-is-none":
            return None  # type: ignore[return-value]
        if request.route == "support-is-odd":
            return Support("perhaps", environment={"A": 3})  # type: ignore[arg-type, dict-item]
        if request.strategy.time == "fused":
            return Support("unsupported", "the fake has no RNN operator")
        return Support("native", environment={"RNNBENCH_FAKE": request.route})

    def load(self) -> None:
        route = os.environ["RNNBENCH_FAKE"]
        assert route, "the environment that `support` asks for is there before the worker starts"
        if route == "import-speeds-the-clock":
            honest = time.perf_counter
            time.perf_counter = lambda: 3600 + honest()
        if route.startswith(HANGS_IN):
            _hang_in(route.removeprefix(HANGS_IN))

    def prepare_builds(self, route: str, device: str) -> None:
        """Says so in the worker's log, and fails: builds do without it."""
        print(PREPARES, os.getpid(), route, device, flush=True)
        raise KeyError("nothing to prepare")

    def build(self, request: Request, cache: Path) -> FakeProgram:
        digest = hashlib.sha256(
            repr((request.route, request.model, request.strategy, request.batch)).encode()
        ).hexdigest()
        artifact = cache / f"fake-{digest[:16]}"
        cached = artifact.exists()
        if not cached:
            _compile(request.route)
            if request.route == "build-keeps-a-store":
                _take_from_a_store(digest)
            cache.mkdir(parents=True, exist_ok=True)
            artifact.write_text(digest)
        elif request.route == "load-segfaults":
            os.kill(os.getpid(), signal.SIGSEGV)
        program = FakeProgram(request, digest, cached, lambda: self.build(of_one_step(request), cache))
        program.files = ProgramFiles((artifact,))
        if request.route == "build-returns-none":
            return None  # type: ignore[return-value]
        if wrong := WRONG_ARTIFACTS.get(request.route):
            program.artifact = program.artifact.model_copy(update=wrong)
        return program


def _hang_in(where: str) -> None:
    """From here on, the worker hangs there. Only a worker has its module.

    Its objects are changed, and not its classes: functions of the suite that are replaced are put back.
    """
    from rnnbench.worker.trial_sampler import TrialSampler
    from rnnbench.worker.trial_worker import TrialWorker

    if where == "import_framework":
        _hang()
    method = where if where in HANGING_COMMANDS else "sample_path"
    owner = next(
        each for each in gc.get_objects() if type(each) in (TrialWorker, TrialSampler) and hasattr(each, method)
    )
    carried_out = getattr(owner, method)

    def hangs(command: Any) -> object:
        if getattr(command, "path", where) == where:
            _hang()
        return carried_out(command)

    setattr(owner, method, hangs)


def _hang() -> None:
    """Ask for no signal, and never let go of the interpreter's lock. It takes no time of the processor."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.PyDLL(None).pause()


class AbsentBackend(FakeBackend):
    """One whose framework is not installed."""

    name = "absent"

    def probe(self) -> Probe:
        return Probe(
            routes=("honest",), reason="absent-runtime is not installed", install="pip install 'rnnbench[absent]'"
        )


def _compile(route: str) -> None:
    """Imports a module that stands in for a converter: only a build that is not cached needs it.

    Not in a fork of a process in which a program was opened: a runtime has threads by then, and no fork has them.
    """
    if _opened_in not in (0, os.getpid()):
        raise BuildError("the fake compiler waits for a thread that was not forked with it")
    importlib.import_module(CONVERTER)
    if route == "build-fails":
        raise BuildError("the fake compiler refused: error: expected ';'")
    if route == "build-raises":
        raise KeyError("a bug of the adapter's")
    if route == "build-hangs":
        print(HANGING, flush=True)
        time.sleep(3600)
    while route == "build-prints":
        print("still compiling", flush=True)
    if route == "build-exits":
        raise SystemExit("enough")
    if route == "build-ends-the-process":
        os._exit(0)
    if route == "build-segfaults":
        os.kill(os.getpid(), signal.SIGSEGV)


def _take_from_a_store(digest: str) -> None:
    """What an earlier build left there, or else what this one makes."""
    kept = Path(os.environ[STORE]) / digest
    if kept.exists():
        kept.read_bytes()
    else:
        kept.write_bytes(bytes(8 << 10))


def _replace_clock(shown: Callable[[int, int], int]) -> None:
    real, readings = time.perf_counter_ns, itertools.count()
    if real.__module__ == "time":
        since = real()
        time.perf_counter_ns = lambda: since + shown(next(readings), real() - since)


def _end_when_told(told: Path) -> None:
    if told.exists():
        number = int(told.read_text())
        told.unlink()
        if not number:
            raise RuntimeError("the fake runtime refuses")
        os.kill(os.getpid(), number)


def _lose_the_device() -> None:
    global _lost_in
    _lost_in = os.getpid()
    _need_the_device()


def _need_the_device() -> None:
    if _lost_in == os.getpid():
        raise RuntimeError("the fake runtime lost its device")


class FakeProgram(HonestProgram):
    _held: np.ndarray | None = None

    def open(self) -> FakeSession:
        global _opened_in
        _opened_in = os.getpid()
        if self.request.route == "holds-much" and self.request.strategy.chunk > 1 and self._held is None:
            self._held = np.ones(HELD)
        return FakeSession(self)


class FakeSession(HonestSession):
    """Does what its route is named for, in the public path."""

    timed = False

    def __init__(self, program: HonestProgram) -> None:
        self._steps = 0
        self._grown: list[np.ndarray] = []
        self.leaked: list[int] = []
        super().__init__(program)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        _need_the_device()
        route = self.request.route
        if route == "check-hangs" and self._steps > 0:
            time.sleep(3600)
        if route == "check-raises" and self._steps > 0:
            _lose_the_device()
        if route == "check-ends-the-process" and self._steps > 0:
            os._exit(0)
        if route == "check-exits" and self._steps > 0:
            raise SystemExit("enough")
        if route == "check-closes-its-descriptors" and self._steps > 0:
            os.closerange(3, 256)
        if route == "check-grows":
            self._grown.append(np.ones(16 << 20))
        if route == "leaves-denormals-flushed":
            flush_denormals()
        if route == "leaves-errors-raised":
            np.seterr(over="raise", invalid="raise", divide="raise", under="raise")
        y = super()._advance(x)
        if route == "wrong-third-step" and self._steps >= 2:
            y = y + np.float32(1e-3)
        self.timed = self.timed or not gc.isenabled()
        if self.timed and route == "wrong-public-once-timed":
            y = y * np.float32(1.001)
        self._steps += len(x)
        return y

    def compute(self, x: np.ndarray) -> np.ndarray:
        """As the honest one; slower by a share of its own time, or wrong, where its environment says so.

        The time is the processor's: that of a call which waited for its core would make it work for longer.
        """
        begun = time.thread_time()
        y = super().compute(x)
        now = time.thread_time()
        end = now + (now - begun) * float(os.environ.get(SLOWDOWN, "0"))
        while time.thread_time() < end:
            continue
        return y * np.float32(1.001) if WRONG in os.environ else y

    def _write_state(self, state: Arrays) -> None:
        """Before a block, Python's collector rests already. The block reads its clock after that."""
        super()._write_state(state)
        self._steps = 0
        if not gc.isenabled() and self.request.route in CLOCKS:
            _replace_clock(CLOCKS[self.request.route])

    def _bind(self, ring: list[np.ndarray]) -> FakeBound:
        return FakeBound(self, ring)


class FakeBound(HonestBound):
    """Does what its route is named for, in the timed path.

    Python's collector rests while calls are timed, and at no other time: by that a fault can wait for sampling.
    """

    timed = False
    grown: tuple[np.ndarray, ...] = ()

    def __call__(self) -> None:
        _need_the_device()
        route = self.session.request.route
        self.timed = self.timed or not gc.isenabled()
        is_faulty = self.timed and self.session.request.strategy.chunk == FAULTY_CHUNK
        if self.timed and route == "sample-segfaults":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.timed and route == "sample-exits":
            raise SystemExit("enough")
        if route == "ends-when-told":
            _end_when_told(Path(os.environ[TOLD]))
        if is_faulty and route == "sample-raises":
            _lose_the_device()
        if self.timed and route == "sample-leaks-descriptors" and not self.session.leaked:
            self.session.leaked = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
        if is_faulty and route == "sample-grows":
            self.grown += (np.ones(2 * HELD),)
        super().__call__()
        if route == "wrong-bound" or (self.timed and route == "wrong-once-timed"):
            self.y = self.y * np.float32(1.001)
