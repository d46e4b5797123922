"""Which programs the common suite runs on, each built once for the whole session.

Backends come from the registry. NumPy, which builds in a millisecond, has each model with each state; the compilers a
list that covers cells, shapes and strategies in a dozen builds a route. What a backend does not support
is left out here, and `test_common_support.py` holds it to a reason.

`make test` builds a few of them, and `make test-all` all (`tests/fake/quick_tests.py`).
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from backend_jobs import FAKES, FOLDER, collects, items_of, jobs_here
from quick_tests import few, runs_all

from rnnbench.backends import AdapterError, registry
from rnnbench.backends.base import Arrays, Artifact, Backend, Program, Request, Session
from rnnbench.backends.program_store import ProgramStore
from rnnbench.cases.trial import Precision, Strategy, Target
from rnnbench.plan import adapters
from rnnbench.rnn.network import Network
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.reference import Trajectory, run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_inputs, draw_state, draw_weights

LSTM = Model(cell="lstm", input=5, hidden=17)
LSTM_STACK = Model(cell="lstm", input=5, hidden=33, layers=2)
LSTM_CLIPPED = Model(cell="lstm", input=6, hidden=17, projection=9, bias=False, clip=0.4, cell_clip=0.3)
LSTM_BACKWARDS = Model(cell="lstm", input=5, hidden=17, layers=2, direction="reverse")
LSTM_BOTH_WAYS = Model(cell="lstm", input=5, hidden=17, layers=2, direction="bidirectional")
GRU_AFTER = Model(cell="gru", input=5, hidden=17)
GRU_BEFORE = Model(cell="gru", input=4, hidden=33, reset_after=False)
GRU_BACKWARDS = Model(cell="gru", input=4, hidden=17, direction="reverse")
RNN = Model(cell="rnn", input=3, hidden=17)
RNN_RELU = Model(cell="rnn", input=3, hidden=33, activation="relu", clip=0.5)
COUNTER = Model(cell="counter", input=4, hidden=4)
LSTM_INT8, GRU_INT8 = (Model(cell=cell, input=32, hidden=128) for cell in ("lstm", "gru"))
"""Large enough for the bytes of their weights to show in an artifact."""
LSTM_HARD = Model(cell="lstm", input=5, hidden=17, activation="relu", recurrent_activation="hard_sigmoid")
GRU_RELU = Model(cell="gru", input=5, hidden=17, activation="relu")
RNN_BOTH_WAYS = Model(cell="rnn", input=3, hidden=17, layers=2, direction="bidirectional")
RNNOISE = RNNoise(input=5, hidden=6)
"""Layers of other kinds, with states of several sizes and with none, that read several others."""

BUILD = 4
"""What a build takes beside its layers, in copies of a layer."""
TOLERANCE = {"exact": 2e-5, "approximate": 1e-3}
"""Absolute and relative, in float32 against float64, over a few dozen steps of small models, by an artifact's math."""
IN_8_BITS = 0.05
"""As `TOLERANCE`, where x and h enter products in 8 bits. Conformance has a model of it."""


@dataclass(frozen=True)
class Plan:
    """One program to build. `tails`: also feed it ragged rests, which costs a second build.

    `ragged`: its rows have lengths of their own.
    """

    model: Network
    strategy: Strategy
    batch: int
    tails: bool = True
    ragged: bool = False
    device: str = "cpu"
    dtype: str = "float32"

    def request(self, route: str, weights: Weights) -> Request:
        numbers = self.batch, Precision.of(self.dtype)
        return Request(route, self.model, weights, self.strategy, *numbers, self.device, ragged=self.ragged)

    @property
    def has_rest(self) -> bool:
        """Whether a call of fewer steps than a chunk builds a program of one step."""
        return self.tails and self.strategy.state != "none" and self.strategy.chunk > 1

    def __str__(self) -> str:
        changed = self.model.model_dump(exclude_defaults=True, exclude={"cell", "input"})
        kind = self.model.cell if isinstance(self.model, Model) else self.model.network
        model = "-".join([kind, *(f"{name}{value}" for name, value in changed.items())])
        others = ["ragged"] * self.ragged + [self.dtype] * (self.dtype != "float32")
        return "-".join([f"{model}-b{self.batch}-{self.strategy}-c{self.strategy.chunk}", *others])


MODELS = [
    *(LSTM, LSTM_STACK, LSTM_CLIPPED, LSTM_BOTH_WAYS, GRU_AFTER),
    *(GRU_BEFORE, GRU_BACKWARDS, RNN, RNN_RELU, COUNTER, LSTM_HARD),
]
SHAPES = [(1, 1), (4, 3), (4, 1), (1, 3)]
"""Chunks with batches, in the order in which models and states take them in turn."""
EVERY_MODEL = [
    Plan(model, Strategy("looped", state, chunk), batch)
    for place, model in enumerate(MODELS)
    for turn, state in enumerate(["none", "stitched", "stateful"])
    for chunk, batch in [SHAPES[(place + turn) % len(SHAPES)]]
]
"""Each model with each state, each state with each chunk and batch, and each model with each chunk and each batch."""

COVERING = [
    Plan(LSTM, Strategy("looped", "stitched", 4), batch=1),
    Plan(LSTM, Strategy("looped", "stateful", 1), batch=1),
    Plan(LSTM, Strategy("fused", "stitched", 4), batch=1),
    Plan(LSTM_STACK, Strategy("fused", "stateful", 4), batch=3),
    Plan(LSTM_BOTH_WAYS, Strategy("fused", "none", 4), batch=1),
    Plan(LSTM, Strategy("unrolled:2", "stitched", 4), batch=3, tails=False),
    Plan(LSTM_STACK, Strategy("unrolled", "stateful", 2), batch=3, tails=False),
    Plan(LSTM_CLIPPED, Strategy("looped", "stitched", 1), batch=1),
    Plan(LSTM_BOTH_WAYS, Strategy("looped", "none", 4), batch=3),
    Plan(GRU_AFTER, Strategy("looped", "stateful", 4), batch=3),
    Plan(GRU_BEFORE, Strategy("unrolled", "stitched", 4), batch=1, tails=False),
    Plan(RNN, Strategy("unrolled", "stateful", 1), batch=1),
    Plan(COUNTER, Strategy("looped", "stitched", 4), batch=3, tails=False),
    Plan(LSTM_HARD, Strategy("looped", "stateful", 4), batch=1, tails=False),
    Plan(GRU_RELU, Strategy("fused", "stitched", 4), batch=3, tails=False),
]

IMPORTED = [
    Plan(LSTM, Strategy("fused", "stitched", 4), batch=1),
    Plan(LSTM, Strategy("looped", "stitched", 4), batch=1),
    Plan(LSTM_BOTH_WAYS, Strategy("fused", "none", 4), batch=1),
    Plan(LSTM_STACK, Strategy("unrolled", "stateful", 2), batch=3, tails=False),
    Plan(GRU_AFTER, Strategy("fused", "stateful", 4), batch=3, tails=False),
    Plan(COUNTER, Strategy("looped", "stitched", 4), batch=3, tails=False),
    Plan(LSTM_HARD, Strategy("unrolled", "stitched", 4), batch=1, tails=False),
]
"""For programs that an importer brings to a compiler whose own routes run all of the above: 2 s each, or more. And for
programs that another route of the same framework runs uncompiled, or that another runtime reads from the same file."""

IMPORTERS = {
    *(Target("iree", "onnx"), Target("iree", "stablehlo"), Target("openvino", "onnx")),
    *(Target("tensorflow", "xla"), Target("tensorflow", "keras-xla")),
}

FROM_TORCH = [
    Plan(LSTM, Strategy("fused", "stitched", 2), batch=1),
    Plan(RNN_BOTH_WAYS, Strategy("fused", "none", 2), batch=1),
    Plan(GRU_AFTER, Strategy("fused", "stateful", 2), batch=3, tails=False),
]
"""For programs in which torch's modules arrive unrolled, a copy of the cell for each step, layer and direction."""

INDUCTOR = [
    Plan(LSTM, Strategy("unrolled:2", "stitched", 4), batch=1),
    Plan(RNN_BOTH_WAYS, Strategy("fused", "none", 2), batch=1),
    Plan(GRU_BEFORE, Strategy("unrolled", "stitched", 2), batch=3, tails=False),
    Plan(RNNOISE, Strategy("unrolled", "stateful", 1), batch=3, tails=False),
]
AHEAD_OF_TIME = [
    Plan(GRU_AFTER, Strategy("looped", "stateful", 4), batch=3, tails=False),
    Plan(RNNOISE, Strategy("looped", "stateful", 4), batch=3, tails=False),
    Plan(GRU_AFTER, Strategy("fused", "stitched", 2), batch=1, tails=False),
]
"""For programs that a C++ compiler makes of generated code: 5 to 20 s each. torch/test_pt2_types.py has one ahead of
time that is neither looped nor fused. torch/test_torch.py looks at two of them."""

FROM_TENSORFLOW = [
    Plan(LSTM, Strategy("looped", "stateful", 4), batch=1),
    Plan(LSTM_STACK, Strategy("fused", "stitched", 2), batch=3, tails=False),
    Plan(RNN, Strategy("unrolled", "none", 4), batch=1),
]
"""For programs that TensorFlow makes of a SavedModel. `NETWORKS` adds one with states of several sizes."""

RAGGED = [
    Plan(LSTM_BOTH_WAYS, Strategy("fused", "none", 4), batch=3, ragged=True),
    Plan(GRU_BACKWARDS, Strategy("fused", "none", 4), batch=3, ragged=True),
    Plan(LSTM_BACKWARDS, Strategy("looped", "none", 4), batch=3, ragged=True),
    Plan(GRU_AFTER, Strategy("unrolled", "none", 4), batch=3, ragged=True),
]
"""Of programs whose rows end before their call does. For every target: few take any of them."""

REPEATED_IN_KERAS = [
    Plan(LSTM, Strategy("looped", "stitched", 4), batch=1),
    Plan(LSTM_STACK, Strategy("fused", "stateful", 4), batch=3),
    Plan(LSTM_BOTH_WAYS, Strategy("looped", "none", 4), batch=3),
    Plan(LSTM_BACKWARDS, Strategy("looped", "none", 4), batch=3, ragged=True),
]
"""On a processor, what Keras calls fused is its loop (tensorflow/test_lowered.py): its routes run the other plans."""
KERAS = {Target("tensorflow", "keras"), Target("tensorflow", "keras-xla")}

INT8 = [
    Plan(LSTM_INT8, Strategy("fused", "stateful", 4), batch=3, dtype="int8_dynamic"),
    Plan(GRU_INT8, Strategy("looped", "stitched", 4), batch=1, tails=False, dtype="int8_dynamic"),
    Plan(LSTM_INT8, Strategy("unrolled", "stitched", 4), batch=1, tails=False, dtype="int8_weights"),
    Plan(LSTM_INT8, Strategy("looped", "stateful", 4), batch=3, dtype="int8_static"),
    Plan(GRU_INT8, Strategy("unrolled", "stitched", 4), batch=1, tails=False, dtype="int8_static"),
]
"""Programs with int8 weights. For every target: few take any of them."""

NETWORKS = [Plan(RNNOISE, Strategy("looped", "stateful", 4), batch=3, tails=False)]
"""Networks of other layers than cells, for every route that has them (`Probe.authors`). Inductor's have others."""

ON_VULKAN = [
    Plan(LSTM, Strategy("looped", "stitched", 4), batch=1, device="vulkan"),
    Plan(LSTM_STACK, Strategy("unrolled", "stateful", 2), batch=3, tails=False, device="vulkan"),
    Plan(LSTM_BOTH_WAYS, Strategy("looped", "none", 4), batch=3, device="vulkan"),
]
"""For a software device: a call takes 10 ms of the processor's time."""

INDUCTOR_FOLDER = "inductor"
INDUCTOR_TARGETS = {Target("torch", "compile"), Target("torch", "aoti")}
"""Whose programs have one folder, as in a run: Inductor compiles C++ headers once for a folder."""

PLANS = {
    Target("iree", "torch"): FROM_TORCH,
    Target("tvm", "torch"): FROM_TORCH,
    Target("iree", "linalg-direct"): ON_VULKAN,
    Target("iree", "tensorflow"): FROM_TENSORFLOW,
    Target("torch", "compile"): INDUCTOR,
    Target("torch", "aoti"): AHEAD_OF_TIME,
}
SLOW = {
    *(Target("torch", "compile"), Target("torch", "aoti"), Target("tvm", "torch")),
    *(Target("iree", "torch"), Target("iree", "tensorflow"), Target("iree", "linalg-direct")),
}
"""Routes whose builds or calls take the longest. `make test` has the cheapest of their programs that stream."""
BY_HAND = Target("tvm", "tir")
"""The route whose kernels are this suite's own: each model is code of its own."""


@dataclass
class Subject:
    """A built program under test, with its weights and the oracle to hold it against."""

    backend: Backend
    plan: Plan
    request: Request
    program: Program
    store: ProgramStore
    opened: list[Session] = field(default_factory=list)
    """Sessions that the test at hand has opened."""

    def open(self) -> Session:
        """A session until the end of the test. torch gives its stream to the next one, and loads less."""
        self.opened.append(self.program.open())
        return self.opened[-1]

    def close_sessions(self) -> None:
        while self.opened:
            self.opened.pop().close()

    @property
    def cache(self) -> Path:
        return self.store.programs

    @property
    def artifact(self) -> Artifact:
        """With the suite's own digest and size."""
        return self.store.described(self.program, self.request)

    @property
    def chunk(self) -> int:
        return self.plan.strategy.chunk

    def inputs(self, steps: int, seed: int = 1) -> np.ndarray:
        return draw_inputs(self.plan.model, steps, self.plan.batch, seed)

    def state(self, seed: int = 1) -> dict[str, np.ndarray]:
        return draw_state(self.plan.model, self.plan.batch, seed)

    def oracle(self, x: np.ndarray, state: Arrays | None = None, lengths: np.ndarray | None = None) -> Trajectory:
        return run_reference(self.plan.model, self.request.weights, x, state, lengths=lengths)

    def assert_close(self, found: np.ndarray, expected: np.ndarray) -> None:
        tolerance = 0.0 if self.plan.model.is_exact else TOLERANCE[self.program.artifact.math]
        tolerance = IN_8_BITS if self.request.precision.activations else tolerance
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)

    def assert_state(self, found: Arrays, expected: Arrays) -> None:
        assert list(found) == list(expected)
        for name, array in expected.items():
            self.assert_close(found[name], array)


@dataclass
class Workshop:
    """Builds every program once, under a folder that outlives it."""

    folder: Path
    built: dict[tuple[Target, Plan], Subject] = field(default_factory=dict)

    def subject(self, target: Target, plan: Plan) -> Subject:
        # Ragged rests are a matter of what is fed to a program, and not of the program.
        key = target, replace(plan, tails=True)
        if key not in self.built:
            backend = registry.find(target.backend)
            request = plan.request(target.route, draw_weights(plan.model, 1, plan.dtype))
            if plan.device != "cpu":
                os.environ.update(backend.support(request).environment)
            backend.load()
            store = self.store(target)
            self.built[key] = Subject(backend, plan, request, backend.build(request, store.programs), store)
        return self.built[key]

    def lent(self, target: Target, plan: Plan) -> Iterator[Subject]:
        """To one test."""
        subject = self.subject(target, plan)
        yield subject
        subject.close_sessions()

    def store(self, target: Target) -> ProgramStore:
        """Where the next program of a target is built."""
        place = INDUCTOR_FOLDER if target in INDUCTOR_TARGETS else str(len(self.built))
        return ProgramStore(self.folder / place)

    @property
    def inductor(self) -> Path:
        """Where all programs of Inductor are built."""
        return ProgramStore(self.folder / INDUCTOR_FOLDER).programs

    def close(self) -> None:
        for subject in self.built.values():
            subject.program.close()


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    workshop = Workshop(tmp_path_factory.mktemp("programs"))
    yield workshop
    workshop.close()


@pytest.fixture
def cache_for(workshop: Workshop, tmp_path: Path) -> Callable[[str], Path]:
    """Where a test builds a program of a target, such as `torch:aoti`: a folder of its own, but for Inductor's."""

    def cache(target: str) -> Path:
        of_inductor = Target(*target.split(":")) in INDUCTOR_TARGETS
        return workshop.inductor if of_inductor else tmp_path / "cache"

    return cache


def _lent() -> Any:
    """A fixture: a program that is lent to one test. `CHOICES` says which programs."""

    def lent(request: pytest.FixtureRequest, workshop: Workshop) -> Iterator[Subject]:
        yield from workshop.lent(*request.param)

    return pytest.fixture(lent)


stream = _lent()
"""A program whose state outlives a call."""
ragged_stream = _lent()
"""A streaming program that is also fed what its chunk does not divide."""
whole = _lent()
"""A program that starts from zeros at every call."""
rows = _lent()
"""A program whose rows have lengths of their own."""
program = _lent()
"""Any program."""
looped_network = _lent()
"""A program of a network of other layers than cells, with a loop for each that has a state."""
written_steps = _lent()
"""A program of several steps, whose compiler makes the loops and copies that it is given."""


@pytest.fixture
def programs(request: pytest.FixtureRequest, workshop: Workshop) -> list[Subject]:
    """All programs of one target."""
    return [workshop.subject(request.param, plan) for plan in _built(request.param) if not plan.ragged]


@pytest.fixture
def default_program(request: pytest.FixtureRequest, workshop: Workshop) -> Subject:
    """One program of a backend's default route."""
    return workshop.subject(request.param, _built(request.param)[0])


def _is_stack(model: Network) -> bool:
    """Whether it is a stack of cells with products. LLVM unrolls the loop of a counter."""
    return isinstance(model, Model) and not model.is_exact


CHOICES = {
    "stream": lambda plan: plan.strategy.state != "none",
    "ragged_stream": lambda plan: plan.strategy.state != "none" and plan.tails,
    "whole": lambda plan: plan.strategy.state == "none" and not plan.ragged,
    "rows": lambda plan: plan.ragged,
    "program": lambda plan: not plan.ragged,
    "written_steps": lambda plan: _is_stack(plan.model) and plan.strategy.time != "fused" and plan.strategy.chunk > 1,
    "looped_network": lambda plan: not isinstance(plan.model, Model) and plan.strategy.time == "looped",
}
TARGETS = {"written_steps": {"numpy:eager", "iree:linalg", "jax:jit", "tvm:relax", "tvm:tir"}}
"""Of a choice that is for some targets alone. Other compilers change the form of a program, or have tests of it."""


LOST = pytest.StashKey[str]()
"""The test in which the Vulkan device was lost."""
LOST_STATUS = 75
"""The process's exit status then: a failure that need not come again (EX_TEMPFAIL of sysexits.h)."""
LOST_EXIT = pytest.StashKey[int]()
"""The status with which the process is to end at once."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Merely collecting a backend's folder imports its framework."""
    jobs = jobs_here()
    if not jobs or FOLDER not in collection_path.parents:
        return None
    file = PurePosixPath(collection_path.relative_to(FOLDER))
    return None if any(collects(job, file) for job in jobs) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With RNNBENCH_TEST_BACKEND, those backends' tests alone: some frameworks abort where another one is loaded."""
    if not (jobs := jobs_here()):
        return
    kept = set(items_of(jobs, items))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish() -> None:
    """What is imported by now stays. The collector would visit it all whenever a compiler makes a lot."""
    gc.freeze()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Where a Vulkan device was lost, every later call of the process fails: no further test is begun."""
    if call.excinfo is not None and "VK_ERROR_DEVICE_LOST" in str(call.excinfo.value):
        item.session.shouldstop = item.config.stash[LOST] = f"the Vulkan device was lost in {item.nodeid}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """By this status the Makefile runs the job once more. Where another test failed too, it has failed."""
    if LOST in session.config.stash and session.testsfailed == 1:
        session.exitstatus = session.config.stash[LOST_EXIT] = LOST_STATUS


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Without the interpreter's own end, in which the driver of a lost device may die of SIGSEGV."""
    if (status := config.stash.get(LOST_EXIT, None)) is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", [_param(target, reason) for target, reason in _targets()])
    defaults = {target.backend: (target, reason) for target, reason in reversed(_targets())}
    for name in {"default_target", "default_program"} & set(metafunc.fixturenames):
        values = [_param(*default) for default in defaults.values()]
        metafunc.parametrize(name, values, indirect=name == "default_program")
    if "programs" in metafunc.fixturenames:
        metafunc.parametrize("programs", [_param(target, reason) for target, reason in _targets()], indirect=True)
    for name in CHOICES.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(name, _subjects(name), indirect=True)


@cache
def _targets() -> list[tuple[Target, str]]:
    """Every route of the registered backends that are tested here, with the reason why it cannot be run, or none."""
    wanted = {job.partition("-")[0] for job in jobs_here()}
    targets = []
    for name in registry.names():
        if name in FAKES or (wanted and name not in wanted):
            continue
        probe = registry.find(name).probe()
        for route in probe.routes:
            (device, *_) = {plan.device for plan in PLANS.get(Target(name, route), COVERING)}
            lack = probe.lack(route) or probe.device_lack(device)
            targets.append((Target(name, route), f"{lack.reason}; {lack.install}" if lack else ""))
    return targets


@cache
def _plans(target: Target) -> list[Plan]:
    shared = EVERY_MODEL if target.backend == "numpy" else IMPORTED if target in IMPORTERS else COVERING

    repeated = REPEATED_IN_KERAS if target in KERAS else []
    networks = [] if target in INDUCTOR_TARGETS else NETWORKS
    plans = [plan for plan in (*PLANS.get(target, shared), *networks, *RAGGED, *INT8) if plan not in repeated]
    answers = adapters.supports(target.backend, [plan.request(target.route, Weights(())) for plan in plans])
    if failed := [answer for answer in answers if isinstance(answer, AdapterError)]:
        raise failed[0]
    return [plan for plan, answer in zip(plans, answers, strict=True) if answer.level != "unsupported"]


def _built(target: Target) -> list[Plan]:
    """Those of a target's programs that are built here."""
    return [plan for plan in _plans(target) if runs_all() or (target, plan) in _quick(target.backend)]


@cache
def _quick(backend: str) -> set[tuple[Target, Plan]]:
    """The programs of `make test`: each route has each time, and each backend has each cell and state."""
    slow, others = [], []
    for target, reason in _targets():
        if target.backend == backend and not reason:
            pairs = [(target, plan) for plan in _plans(target)]
            if target in SLOW:
                slow += sorted(pairs, key=lambda pair: (pair[1].strategy.state == "none", _cost(pair[1])))[:1]
            else:
                others += pairs
    places = few([_things(*pair) for pair in others], [_cost(plan) for _, plan in others])
    return {*slow, *(others[place] for place in places)}


def _things(target: Target, plan: Plan) -> list[Any]:
    """What a program shows: of its route, and of any route of its backend."""
    strategy, model = plan.strategy, plan.model
    if plan.ragged or plan.dtype != "float32":
        return [(plan.ragged, plan.dtype, strategy.time if plan.ragged else "")]
    of_route = [strategy.time, *([model] if target == BY_HAND else [])]
    of_backend = [_family(model), len(model.graph) > 1, strategy.state, plan.batch > 1, plan.has_rest]
    return [*((target, *thing) for thing in enumerate(of_route)), *enumerate(of_backend)]


def _family(model: Network) -> tuple[str, str]:
    """The cell of a stack with its direction, or the kind of another network."""
    return (model.cell, model.direction) if isinstance(model, Model) else (model.network, "")


def _cost(plan: Plan) -> int:
    """In copies of a layer, beside what each build takes."""
    copies = plan.strategy.chunk if plan.strategy.time == "unrolled" else plan.strategy.copies or 1
    layers = len(plan.model.graph)
    return BUILD + copies * layers + plan.has_rest * (BUILD + layers)


@cache
def _subjects(name: str) -> list[Any]:
    subjects = []
    for target, reason in _targets():
        if str(target) not in TARGETS.get(name, {str(target)}):
            continue
        if reason:
            subjects.append(_param(target, reason))
        else:
            built = _built(target)
            subjects += [
                pytest.param((target, plan), id=f"{target}-{plan}", marks=[] if plan in built else pytest.mark.proof)
                for plan in filter(CHOICES[name], _plans(target))
            ]
    return subjects


def _param(target: Target, reason: str) -> Any:
    marks = [pytest.mark.skip(reason=f"{target} {reason}")] if reason else []
    return pytest.param(target, id=str(target), marks=marks)
