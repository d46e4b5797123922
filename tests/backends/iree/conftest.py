"""One cache for the whole session, so that a program that several tests look at is compiled once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rnnbench.backends.base import Program, Request
from rnnbench.backends.iree import IreeBackend
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

Make = Callable[..., Request]
Build = Callable[..., Program]


def make_request(
    *,
    time: str = "looped",
    state: State = "stitched",
    chunk: int = 4,
    batch: int = 1,
    dtype: str = "float32",
    **model: Any,
) -> Request:
    """An LSTM of 5 inputs and 17 units, unless told otherwise."""
    spec = Model(**{"cell": "lstm", "input": 5, "hidden": 17, **model})
    strategy = Strategy(time, state, chunk)
    return Request("linalg", spec, draw_weights(spec, 0), strategy, batch, Precision.of(dtype))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("iree.runtime")
    return tmp_path_factory.mktemp("iree")


@pytest.fixture(scope="session")
def build(folder: Path) -> Build:
    """Keywords of `make_request` to a program, the same one for the same keywords."""

    @cache
    def built(**keywords: Any) -> Program:
        return IreeBackend().build(make_request(**keywords), folder)

    return built


@pytest.fixture(scope="session")
def request_of() -> Make:
    return make_request
