"""Calls that are recorded once and replayed: the stream is the same one. The recorder is a fake that needs no GPU."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.torch import TorchBackend
from rnnbench.cases.trial import Limits, Measure, Precision, Strategy, Target, Trial
from rnnbench.conformance import ReferenceTrajectories, run_checks
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_weights

torch = pytest.importorskip("torch")

from fake_cuda_graphs import FakeGraphs  # noqa: E402
from few_turns import set_turns  # noqa: E402
from quick_tests import for_proof  # noqa: E402

from rnnbench.backends.torch.aoti import PackageStream  # noqa: E402
from rnnbench.backends.torch.graph_stream import GraphStream, recorded  # noqa: E402
from rnnbench.backends.torch.stream import TorchProgram  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.jit")

LSTM = Model(cell="lstm", input=5, hidden=16, layers=2)
CHUNK = 4
STRATEGIES = [
    ("eager", "fused", "stitched"),
    ("eager", "fused", "stateful"),
    ("eager", "fused", "none"),
    ("eager", "looped", "stitched"),
    ("eager", "looped", "none"),
    ("script", "unrolled", "stitched"),
    ("script", "looped", "stateful"),
]

CHECKED = [STRATEGIES[0], STRATEGIES[2], STRATEGIES[-1]]
"""Each state and each way to advance. All are held against the program that is not replayed."""


def trial_of(request: Request) -> Trial:
    numbers = {"steps": 16, "batch": 2, "dtype": "float32", "device": "cpu", "threads": 1, "seed": 0}
    target, limits = Target("torch", request.route), Limits()
    return Trial("graphs", target, request.stack, request.strategy, **numbers, limits=limits, measure=Measure())  # type: ignore[arg-type]


def request_of(route: str, time: str, state: Any, model: Model = LSTM) -> Request:
    return Request(route, model, draw_weights(model, 0), Strategy(time, state, CHUNK), 2, Precision.of("float32"))


def replayed(program: TorchProgram) -> TorchProgram:
    """The program with its calls replayed."""
    opener = recorded(program.request, program._open_stream, FakeGraphs)
    return TorchProgram(program.request, program.artifact, program.files, True, opener, program._build_tail)


@pytest.mark.parametrize(("route", "time", "state"), [*CHECKED[:1], *for_proof(*CHECKED[1:])])
def test_a_replayed_program_passes_every_check(
    route: str, time: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_turns(monkeypatch)
    request = request_of(route, time, state, LSTM.model_copy(update={"layers": 1}))
    program: Any = TorchBackend().build(request, tmp_path)
    results = dict(run_checks(replayed(program), ReferenceTrajectories(trial_of(request), tmp_path)))
    failed = {name: result.detail for name, result in results.items() if result.verdict == "fail"}
    assert not failed
    assert sum(result.verdict == "pass" for result in results.values()) > 10


@pytest.mark.parametrize(("route", "time", "state"), [one for one in STRATEGIES if one[2] != "none"])
def test_bound_and_public_calls_advance_the_same_stream(route: str, time: str, state: str, tmp_path: Path) -> None:
    program: Any = TorchBackend().build(request_of(route, time, state), tmp_path)
    x = draw_inputs(LSTM, 3 * CHUNK, 2, 0)
    chunks = [{"x": x[start : start + CHUNK]} for start in range(0, 3 * CHUNK, CHUNK)]
    seen = []
    for one in (program, replayed(program)):
        session = one.open()
        first, second = session.bind(chunks[:2]), session.bind(chunks[2:])
        got = [session.step(chunks[1])["y"]]
        for bound in (first, second, first, second):
            bound()
            got.append(bound.output()["y"])
        state_then = session.get_state()
        session.reset()
        got.append(session.step(chunks[0])["y"])
        session.set_state(state_then)
        first()
        seen.append([*got, first.output()["y"], *session.get_state().values()])
        session.close()
    for plain, again in zip(*seen, strict=True):
        # The fake replays an operator with oneDNN, which rounds otherwise.
        np.testing.assert_allclose(plain, again, rtol=0, atol=1e-6)


def test_the_stream_of_a_package_can_be_recorded() -> None:
    """Its runner is played by a function: what AOTInductor makes for the processor cannot be recorded by the fake."""

    def run(arguments: list[Any]) -> list[Any]:
        x, h = arguments
        return [x + h, h + 1]

    package: Any = SimpleNamespace(loader=SimpleNamespace(run=run))
    with torch.inference_mode():
        stream = GraphStream(PackageStream(package, {"h": torch.zeros(1)}, stitched=True), FakeGraphs(), torch.zeros(1))
        call = stream.prepare(torch.full((1,), 10.0))
        assert [float(call()), float(call()), float(stream.step(torch.zeros(1))), float(call())] == [10, 11, 2, 13]
        stream.write({"h": torch.full((1,), 5.0)})
        assert [float(call()), float(stream.state["h"])] == [15, 6]


def test_a_package_without_a_state_of_its_own_writes_that_of_its_stream() -> None:
    """The package is played by a function, which changes the buffer that it was given when it was loaded."""
    h = torch.zeros(1)

    def package(x: Any) -> Any:
        h.add_(1)
        return x + h

    stream = PackageStream(package, {"h": h}, stitched=False)
    assert float(stream.step(torch.full((1,), 10.0))) == 11
    stream.write({"h": torch.full((1,), 5.0)})
    assert [float(stream.state["h"]), float(stream.step(torch.zeros(1))), float(stream.state["h"])] == [5, 6, 6]


def test_recording_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    program: Any = TorchBackend().build(request_of("eager", "fused", "stateful"), tmp_path)
    session = replayed(program).open()
    session.step({"x": draw_inputs(LSTM, CHUNK, 2, 0)})
    before = session.get_state()
    session.bind([{"x": draw_inputs(LSTM, CHUNK, 2, 1)}])
    for name, array in session.get_state().items():
        np.testing.assert_array_equal(array, before[name])


def test_what_a_replay_reads_lives_as_long_as_the_call(tmp_path: Path) -> None:
    """A CUDA graph knows addresses alone: memory that nothing holds would be used for other tensors."""
    program: Any = TorchBackend().build(request_of("eager", "fused", "stitched"), tmp_path)
    with torch.inference_mode():
        stream: Any = program._open_stream()

        def record(call: Any) -> Any:
            return (lambda: None), call()

        x = torch.zeros(CHUNK, 2, LSTM.input)
        call = GraphStream(stream, record, torch.zeros_like(x)).prepare(x)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is not None
    del call
    gc.collect()
    assert alive() is None
