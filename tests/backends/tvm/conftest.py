"""Programs that several tests look at, each built once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.tvm import TvmBackend
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.calibration import calibrated
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

LSTM = Model(cell="lstm", input=5, hidden=17)


def requested(
    route: str = "tir",
    time: str = "looped",
    state: State = "stitched",
    chunk: int = 6,
    batch: int = 1,
    model: Model = LSTM,
    threads: int = 1,
    dtype: str = "float32",
) -> Request:
    weights = draw_weights(model, 1, dtype)
    if dtype == "int8_static":
        weights = calibrated(model, weights, 0)
    precision = Precision.of(dtype)
    return Request(route, model, weights, Strategy(time, state, chunk), batch, precision, threads=threads)


@pytest.fixture(scope="session")
def request_for() -> Callable[..., Request]:
    return requested


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """`built(route, time, …)`: the program of that request."""
    pytest.importorskip("tvm")
    folder: Path = tmp_path_factory.mktemp("tvm")

    @cache
    def build(*arguments: Any) -> Any:
        return TvmBackend().build(requested(*arguments), folder)

    return build
