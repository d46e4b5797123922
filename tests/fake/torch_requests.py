"""Requests of the torch backend for CUDA, small enough to be built in a moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rnnbench.backends.base import Request
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.network import Network
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

LSTM = Model(cell="lstm", input=5, hidden=17)
RNNOISE = RNNoise(input=5, hidden=6)


def make_request(
    route: str = "eager",
    time: str = "looped",
    state: Any = "stitched",
    launch: Any = "stream",
    model: Network = LSTM,
    device: str = "cuda",
    **changes: Any,
) -> Request:
    strategy = Strategy(time, state, 4, launch)
    request = Request(route, model, draw_weights(model, 0), strategy, 2, Precision.of("float32"), device)
    return replace(request, **changes)
