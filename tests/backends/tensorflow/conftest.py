"""Programs of the TensorFlow backend, each built once for the session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rnnbench.backends.base import Program, Request
from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

Build = Callable[..., Program]


def make_request(
    route: str,
    *,
    time: str = "looped",
    state: State = "stitched",
    chunk: int = 4,
    dtype: str = "float32",
    **model: Any,
) -> Request:
    """An LSTM of 5 inputs and 17 units, unless other sizes are given."""
    spec = Model(**{"cell": "lstm", "input": 5, "hidden": 17, **model})
    weights = draw_weights(spec, 0, dtype)
    return Request(route, spec, weights, Strategy(time, state, chunk), 1, Precision.of(dtype))


@pytest.fixture(scope="session")
def ask() -> Callable[..., Request]:
    return make_request


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tensorflow")
    return tmp_path_factory.mktemp("tensorflow")


@pytest.fixture(scope="session")
def build(folder: Path) -> Build:
    backend = TensorflowBackend()
    backend.load()

    @cache
    def built(route: str, **options: Any) -> Program:
        return backend.build(make_request(route, **options), folder)

    return built
