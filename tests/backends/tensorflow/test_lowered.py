"""How the time steps were lowered is read from the program that ran, not from the request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mixed_network import Mixed, built_and_right, request_for
from quick_tests import for_proof

from rnnbench.backends.program_store import described
from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.backends.tensorflow.lowered import AUTHORED, KERAS, tags
from rnnbench.cases.trial import State, Strategy
from rnnbench.rnn.networks.kws import KwsCrnn, KwsSvdf
from rnnbench.rnn.networks.mamba2 import Mamba2Block
from rnnbench.rnn.networks.rnnoise import RNNoise


def test_a_copy_is_where_its_activation_is() -> None:
    assert tags("while/body/_1/while/cell_copy_3/Tanh_1", KERAS) == {"3"}
    assert tags("cell_copy_3/MatMul", KERAS) == set()
    assert tags("cell_copy_3/MatMul", AUTHORED) == {"3"}
    assert tags("cell_copy_12/add", AUTHORED) == {"12"}


@pytest.mark.first(3)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"time": "looped"}, "looped 1"),
        ({"time": "looped", "layers": 2}, "looped 2"),
        ({"time": "unrolled"}, "unrolled 4"),
        ({"time": "unrolled:2"}, "looped 1 of 2"),
        ({"time": "looped", "state": "stateful", "chunk": 1}, "looped 1"),
        ({"time": "looped", "cell": "counter", "input": 4, "hidden": 4}, "looped 1"),
    ],
    ids=str,
)
def test_a_graph_keeps_its_loops(build, options, expected: str) -> None:
    assert build("graph", **options).artifact.lowered == expected


@pytest.mark.proof
@pytest.mark.parametrize(
    ("route", "time", "state", "rest"),
    [
        ("xla", "looped", "stitched", 0),
        *for_proof(
            ("graph", "unrolled:2", "stateful", 1), ("graph", "looped", "none", 0), ("xla", "unrolled", "stateful", 1)
        ),
    ],
)
def test_a_network_of_other_layers_is_right(folder: Path, route: str, time: str, state: State, rest: int) -> None:
    built_and_right(TensorflowBackend(), request_for(Mixed(), route, Strategy(time, state, 4)), folder, rest)


@pytest.mark.parametrize(
    ("route", "time", "state", "copies"),
    [("graph", "looped", "stitched", 1), *for_proof(("xla", "unrolled", "stateful", 4))],
)
def test_a_convolution_over_time_and_frequency_is_one_operation(
    folder: Path, route: str, time: str, state: State, copies: int
) -> None:
    """Slices and a product for each frequency took 2.3 times as long."""
    request = request_for(KwsCrnn(input=9, filters=3, hidden=6), route, Strategy(time, state, 4))
    operations = built_and_right(TensorflowBackend(), request, folder, rest=0).artifact.operations["input"]
    assert operations["Conv2D"] == 2 * copies


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (KwsSvdf(input=5, hidden=6), {"Sum": 6}),
        (Mamba2Block(input=5, hidden=6, heads=2, keys=4), {"BatchMatMulV2": 1, "Einsum": 0}),
    ],
)
def test_what_one_operation_computes_is_not_many(folder: Path, model: Any, expected: dict[str, int]) -> None:
    """A sum of taps, and a row by the matrices of heads: more took 1.2 and 1.3 times as long."""
    request = request_for(model, "graph", Strategy("unrolled", "stitched", 1))
    operations = built_and_right(TensorflowBackend(), request, folder, rest=0).artifact.operations["input"]
    assert {name: operations.get(name, 0) for name in expected} == expected


@pytest.mark.proof
@pytest.mark.parametrize(
    ("route", "time", "form"),
    [("graph", "unrolled", "unrolled 20"), *for_proof(("xla", "unrolled:2", "looped 5 of 2"))],
)
def test_copies_are_counted_for_each_layer_with_state(folder: Path, route: str, time: str, form: str) -> None:
    request = request_for(RNNoise(input=5, hidden=6), route, Strategy(time, "stitched", 4))
    assert TensorflowBackend().build(request, folder).artifact.lowered == form


@pytest.mark.first(1)
@pytest.mark.parametrize(("route", "cell"), [("graph", "gru"), ("graph", "lstm"), ("keras", "gru")])
def test_a_product_is_not_joined_with_its_bias(build, route: str, cell: str) -> None:
    """The joint kernel takes twice the time of both for one row."""
    artifact = build(route, cell=cell, time="unrolled").artifact
    assert not [name for name in artifact.operations["compiled"] if "Fused" in name]
    assert "optimizer.remapping=False" in artifact.flags


def test_xla_removes_a_loop_of_one_pass(build) -> None:
    assert build("xla", time="looped", state="stateful", chunk=1).artifact.lowered == "unrolled 1"
    assert build("xla", time="looped").artifact.lowered == "looped 1"


@pytest.mark.proof
def test_a_stateful_keras_layer_fed_one_sample_still_has_a_while(build) -> None:
    one_sample = {"state": "stateful", "chunk": 1}
    looped, unrolled = build("keras", **one_sample), build("keras", time="unrolled", **one_sample)
    assert looped.artifact.lowered == "looped 1"
    assert looped.artifact.operations["compiled"]["While"] == 1
    assert unrolled.artifact.lowered == "unrolled 1"
    assert "While" not in unrolled.artifact.operations["compiled"]
    assert build("keras-xla", **one_sample).artifact.operations["compiled"]["while"] == 1


@pytest.mark.proof
def test_what_keras_calls_fused_is_its_loop_on_a_cpu(build) -> None:
    fused, looped = build("keras", time="fused"), build("keras", time="looped")
    assert fused.artifact.lowered == "looped 1"
    assert described(fused, fused.request).digest == described(looped, looped.request).digest
