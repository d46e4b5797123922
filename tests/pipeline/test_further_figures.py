"""A process that dies while it measures a figure beside the latencies: the trial has all but this figure."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from harness_trials import assert_all_figures, make_trial, run_trials
from honest_adapter import HonestBound
from quick_tests import for_proof
from rnnbench_fake import TOLD

from rnnbench.cases import Measure
from rnnbench.conformance import TIMED
from rnnbench.devices import KINDS, DeviceKind
from rnnbench.results import Record
from rnnbench.sampling import SamplingWorker

pytestmark = pytest.mark.usefixtures("few_checks")

WAYS = {"died of SIGABRT": signal.SIGABRT, "died of SIGKILL": signal.SIGKILL, "the fake runtime refuses": 0}
"""Ends of a bound call, by words of the reason."""
Tell = Callable[[], object]


class Counter:
    """A counter of energy. The program ends in the calls after its first reading."""

    source, block_s = "a fake counter", 0.01

    def __init__(self, tell: Tell) -> None:
        self._tell: Tell | None = tell

    def read(self) -> float:
        if self._tell is not None:
            self._tell()
            self._tell = None
        return 1.0


def clock_that(tell: Tell) -> Callable[[int], Callable[[Callable[[], object]], float]]:
    def seconds(call: Callable[[], object]) -> float:
        tell()
        call()
        return 1e-3

    return lambda stream: seconds


FIGURES: dict[str, Callable[[DeviceKind, Tell], DeviceKind]] = {
    "cold": lambda kind, tell: replace(kind, make_evictor=lambda: tell),
    "energy": lambda kind, tell: replace(kind, open_energy=lambda: Counter(tell)),
    "device_time": lambda kind, tell: replace(kind, open_clock=clock_that(tell)),
}
"""The kind of a device whose function of this figure tells the program to end in its next bound call."""


SCENARIOS: dict[str, tuple[str, float]] = {"streams": ("serve_frames", 5e-4), "server": ("serve_requests", 4_000.0)}
"""The suite's function before which the program is told, and the setting of the case."""


DIED, KILLED, REFUSED = WAYS
ENDS = [("cold", DIED)]
OTHER_ENDS = [
    ("energy", REFUSED),
    ("cold", KILLED),
    ("cold", REFUSED),
    ("energy", DIED),
    ("device_time", REFUSED),
    ("device_time", DIED),
]
OTHER_ENDS += [("streams", DIED), ("server", DIED)]
"""What is measured when the program ends, and words of the reason. One signal ends a process as another one does."""


@pytest.fixture
def record(figure: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """Of a trial whose program ends where this figure is measured first. Two processes are sampled."""
    told = tmp_path / "told"
    monkeypatch.setenv(TOLD, str(told))

    def tell() -> None:
        told.write_text(str(int(WAYS[words])))

    settings = {} if figure == "device_time" else {figure: 1.0}
    if figure in FIGURES:
        monkeypatch.setitem(KINDS, "cpu", FIGURES[figure](KINDS["cpu"], tell))
    else:
        method, settings[figure] = SCENARIOS[figure]
        serve = getattr(SamplingWorker, method)
        monkeypatch.setattr(SamplingWorker, method, lambda *arguments: (tell(), serve(*arguments))[1])
    if figure == "device_time":
        monkeypatch.setattr(HonestBound, "stream", 5, raising=False)
    trial = make_trial("fake:ends-when-told", measure=Measure(budget=0.1, processes=2, settings=settings))
    _, records = run_trials([trial], tmp_path / "results")
    assert not told.exists(), "the program was told, and ended"
    return records[trial.id]


@pytest.mark.parametrize(("figure", "words"), [*ENDS, *for_proof(*OTHER_ENDS)])
def test_the_latencies_stay_and_the_figure_has_a_reason(record: Record, figure: str, words: str) -> None:
    assert_all_figures(record)
    assert record.conformance[TIMED].verdict == "pass"
    assert all(len(record.timing.latency[path].process_medians) >= 2 for path in ("bound", "public"))
    assert figure not in record.timing.latency
    assert (record.timing.streams, record.timing.server) == (None, None)
    assert (record.energy, record.metrics.keys() & {"energy_per_step", "device_time_per_step"}) == (None, set())
    assert record.unmeasured.keys() == {figure}
    assert "while it was measured: " in record.unmeasured[figure]
    assert words in record.unmeasured[figure]
    found = [finding.detail for finding in record.findings if f"while {figure.replace('_', ' ')} was" in finding.detail]
    assert len(found) == 1, record.findings
