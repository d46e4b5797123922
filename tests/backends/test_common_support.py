"""Every backend answers every question at once: what it supports, and why not, without importing a framework."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
from waiting import PATIENCE_S

from rnnbench.backends import registry
from rnnbench.backends.base import BuildError, Request, Support
from rnnbench.cases.trial import Precision, Strategy, Target
from rnnbench.plan import adapters
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_weights

MODELS = [
    Model(cell="lstm", input=5, hidden=17),
    Model(cell="lstm", input=5, hidden=17, layers=2, projection=3, direction="bidirectional", cell_clip=1.0),
    Model(cell="gru", input=5, hidden=17),
    Model(cell="gru", input=5, hidden=17, reset_after=False, direction="reverse", clip=0.5),
    Model(cell="rnn", input=5, hidden=17, activation="relu", bias=False),
    Model(cell="counter", input=4, hidden=4),
]
STRATEGIES = [
    Strategy(time, state, chunk)
    for time in ("fused", "looped", "unrolled", "unrolled:2")
    for state in ("none", "stitched", "stateful")
    for chunk in (1, 4, 512)
]
PRECISIONS = [Precision.of("float32"), Precision.of("float64"), Precision.of("bfloat16")]
PRECISIONS += [Precision.of("int8_weights"), Precision.of("int8_dynamic"), Precision.of("int8_static")]


PLACES = list(itertools.product(("cpu", "cuda", "vulkan"), (1, 2)))
"""Devices with numbers of threads."""
NUMBERS = list(itertools.product((1, 16), PRECISIONS))
"""Batches with precisions."""


def questions(route: str) -> list[Request]:
    """Every model with every strategy, twice. Each of those with every batch and precision, device and threads."""
    requests = []
    for (one, model), (other, strategy) in itertools.product(enumerate(MODELS), enumerate(STRATEGIES)):
        for turn in (2 * one + other, 2 * one + other + 1):
            place, numbers = PLACES[(one + other) % len(PLACES)], NUMBERS[turn % len(NUMBERS)]
            requests.append(Request(route, model, Weights(()), strategy, *numbers, *place))
    return requests


@cache
def answers(target: Target) -> list[tuple[Request, Support]]:
    """The questions of a target, each with its answer."""
    asked = questions(target.route)
    return list(zip(asked, adapters.supports(target.backend, asked), strict=True))


def test_support_answers_everything_with_a_reason(target: Target) -> None:
    levels = set()
    for _, support in answers(target):
        assert isinstance(support, Support)
        levels.add(support.level)
        assert support.level in ("native", "emulated", "unsupported")
        assert support.level == "native" or support.reason.strip()
    assert levels - {"unsupported"}, f"{target} supports nothing"


def test_a_direction_that_runs_backwards_cannot_stream(target: Target) -> None:
    for request, support in answers(target):
        if request.model.direction != "forward" and request.strategy.state != "none":
            assert support.level == "unsupported"


def test_other_devices_than_those_of_the_probe_are_refused(target: Target) -> None:
    probe = registry.find(target.backend).probe()
    devices, answered = probe.devices, answers(target)
    tpu = replace(answered[0][0], device="tpu")
    for request, support in [*answered, (tpu, adapters.support(target.backend, tpu))]:
        if request.device in devices:
            continue
        assert support.level == "unsupported"
        named, why = ", ".join(devices), probe.not_on.get(request.device, "")
        assert support.reason == f"{target} has programs for {named} and none for {request.device}. {why}".rstrip()


def test_probe_names_versions(target: Target) -> None:
    probe = registry.find(target.backend).probe()
    assert target.route in probe.routes
    assert probe.versions
    assert all(probe.versions.values())


def test_building_what_is_unsupported_raises_the_reason(target: Target, tmp_path) -> None:
    backend = registry.find(target.backend)
    forward, backwards = MODELS[0], MODELS[3]
    stateful, float32 = Strategy("looped", "stateful", 4), Precision.of("float32")
    requests = [
        Request(target.route, backwards, draw_weights(backwards, 0), stateful, 1, float32),
        Request(target.route, forward, draw_weights(forward, 0), stateful, 1, float32, device="tpu"),
        Request(target.route, forward, draw_weights(forward, 0), stateful, 1, Precision.of("int4")),
    ]
    for request in requests:
        with pytest.raises(BuildError) as raised:
            backend.build(request, tmp_path)
        assert adapters.support(target.backend, request).reason in str(raised.value)


ASK = """
import sys
from rnnbench.backends import registry
from rnnbench.backends.base import Request
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

model = Model(cell="lstm", input=5, hidden=17)
for route in registry.find(sys.argv[1]).probe().routes:
    for time in ("fused", "looped", "unrolled", "unrolled:2"):
        for state in ("none", "stitched", "stateful"):
            request = Request(route, model, Weights(()), Strategy(time, state, 4), 1, Precision.of("float32"))
            registry.find(sys.argv[1]).support(request)
frameworks = {"torch", "tvm", "iree.compiler", "iree.runtime", "onnx", "onnxruntime", "tensorflow", "jax", "openvino"}
frameworks |= {"keras", "ai_edge_litert.interpreter"}
print(*sorted(frameworks & sys.modules.keys()))
"""


def test_probe_and_support_import_no_framework(default_target: Target) -> None:
    command = [sys.executable, "-c", ASK, default_target.backend]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert answer.stdout.split() == []
