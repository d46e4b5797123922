"""What TVM says it can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.tvm import TvmBackend
from rnnbench.cases.trial import Precision
from rnnbench.rnn.spec import Model

Requested = Callable[..., Request]
COUNTER = Model(cell="counter", input=4, hidden=4)
WIDE = Model(cell="lstm", input=65_536, hidden=65_536)


@pytest.mark.parametrize("route", ["tir", "relax"])
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"time": "fused"}, "no RNN operator"),
        ({"time": "spiral"}, "looped or unrolled here, and not spiral"),
        ({"time": "unrolled", "chunk": 1000}, "1000 copies of a step"),
    ],
)
def test_what_is_unsupported_has_a_reason(request_for: Requested, route: str, arguments: Any, reason: str) -> None:
    support = TvmBackend().support(request_for(route, **arguments))
    assert support.level == "unsupported"
    assert reason in support.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"precision": Precision.of("float16")}, "float32"),
        ({"route": "relax", "threads": 2}, "serial"),
        ({"threads": 3}, "2 blocks of weights to share, which is fewer than 3 threads"),
        ({"model": COUNTER, "threads": 2}, "0 blocks"),
        ({"route": "te"}, "routes relax, tir"),
        ({"model": WIDE}, "32-bit offsets"),
    ],
)
def test_what_no_program_can_be_is_not_built(request_for: Requested, change: Any, reason: str) -> None:
    support = TvmBackend().support(replace(request_for("tir"), **change))
    assert support.level == "unsupported"
    assert reason in support.reason


def test_the_default_route_is_what_tvms_pipeline_makes() -> None:
    assert TvmBackend().probe().routes[0] == "relax"


def test_recursion_is_bounded(request_for: Requested) -> None:
    assert TvmBackend().support(request_for("relax", chunk=1000)).level == "native"
    assert "overflow the stack" in TvmBackend().support(request_for("relax", chunk=1001)).reason
    assert TvmBackend().support(request_for("tir", chunk=10_000)).level == "native"


def test_a_state_inside_is_emulated_by_buffers(request_for: Requested) -> None:
    support = TvmBackend().support(request_for("tir", state="stateful"))
    assert (support.level, support.reason) == (
        "emulated",
        "TVM's programs keep no state: they write it into buffers that the session owns.",
    )
    assert support.environment == {"TVM_NUM_THREADS": "1"}


def test_threads_stay_on_the_cores_of_their_worker(request_for: Requested) -> None:
    support = TvmBackend().support(replace(request_for("tir"), threads=2))
    assert support.environment == {"TVM_NUM_THREADS": "2", "TVM_BIND_THREADS": "0"}


def test_a_missing_package_is_told_with_its_cure(monkeypatch: Any) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("rnnbench.backends.shared.packages.version", missing)
    probe = TvmBackend().probe()
    assert not probe.available
    assert "apache-tvm" in probe.reason
    assert probe.install == "pip install 'rnnbench[tvm]'"
