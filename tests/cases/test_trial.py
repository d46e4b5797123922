"""A trial's id says what it is, and changes with all that decides what is computed and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from rnnbench.cases import Limits, Measure, Precision, Strategy, Target, Trial
from rnnbench.rnn import Model

TRIAL = Trial(
    case="lstm_streaming",
    target=Target("iree", "linalg"),
    model=Model(cell="lstm", input=64, hidden=128),
    strategy=Strategy("looped", "stateful", 16),
    steps=128,
    batch=1,
    dtype="float32",
    device="cpu",
    threads=1,
    seed=0,
    limits=Limits(),
    measure=Measure(),
)


def test_an_id_is_readable_and_ends_in_the_digest():
    pattern = r"lstm_streaming/iree:linalg/looped-stateful/h128-b1-c16-float32-cpu-t1-[0-9a-f]{8}"
    assert re.fullmatch(pattern, TRIAL.id)
    assert TRIAL.id.endswith(TRIAL.digest)


def test_an_id_is_the_same_on_every_machine():
    assert TRIAL.digest == "a74120e3"


@pytest.mark.parametrize(
    "change",
    [
        {"case": "other"},
        {"target": Target("iree", "onnx")},
        {"model": Model(cell="lstm", input=63, hidden=128)},
        {"model": Model(cell="lstm", input=64, hidden=128, bias=False)},
        {"strategy": Strategy("looped", "stitched", 16)},
        {"strategy": Strategy("looped", "stateful", 16, "graph")},
        {"steps": 64},
        {"batch": 2},
        {"dtype": "float64"},
        {"device": "cuda"},
        {"threads": 2},
        {"seed": 1},
        {"lengths": "ragged"},
        {"pinned": "iree-base-compiler==3.0"},
    ],
)
def test_what_is_computed_and_how_changes_the_id(change):
    assert replace(TRIAL, **change).digest != TRIAL.digest


def test_a_launch_is_in_the_id_where_it_is_no_stream():
    """Trials from before there was a launch were all streams, and keep their ids."""
    stream = replace(TRIAL, strategy=Strategy("looped", "stateful", 16, "stream"))
    assert (stream.id, stream.params) == (TRIAL.id, TRIAL.params)
    graph = replace(TRIAL, strategy=Strategy("looped", "stateful", 16, "graph"))
    assert graph.id.split("/")[2] == "looped-stateful-graph"
    assert graph.params == {**TRIAL.params, "launch": "graph"}


def test_how_it_is_measured_does_not_change_the_id():
    assert replace(TRIAL, limits=Limits(build=1.0), measure=Measure(processes=9)).id == TRIAL.id


def test_a_default_written_out_does_not_change_the_id():
    written = Model(cell="lstm", input=64, hidden=128, layers=1, bias=True, clip=None)
    assert replace(TRIAL, model=written).id == TRIAL.id


def test_a_uniform_precision_has_one_dtype():
    assert Precision.of("float16").uniform == "float16"
    assert Precision.of("int8_weights") == Precision("int8", "float32", "float32", "float32")
    assert Precision.of("int8_weights").uniform is None


def test_a_form_of_int8_says_what_its_products_are_of():
    dynamic = Precision.of("int8_dynamic")
    assert (dynamic.weights, dynamic.compute, dynamic.accumulate, dynamic.state) == ("int8", "int8", "int32", "float32")
    assert dynamic.activations == "dynamic"
    assert (dynamic.int8, Precision.of("float32").int8) == ("int8_dynamic", None)
    static = Precision.of("int8_static")
    assert (static, static.int8) == (replace(dynamic, activations="static"), "int8_static")


def test_a_trial_comes_back_from_json_and_can_be_hashed():
    trial = replace(TRIAL, measure=Measure(settings={"cold": 1.0, "period": 0.01}))
    adapter = TypeAdapter(Trial)
    assert adapter.validate_json(adapter.dump_json(trial)) == trial
    assert hash(trial) == hash(replace(trial, measure=Measure(settings={"period": 0.01, "cold": 1.0})))


@pytest.mark.parametrize(
    ("time", "copies"), [("looped", 1), ("unrolled:4", 4), ("chunked:8", 8), ("unrolled", None), ("fused", None)]
)
def test_a_loop_passes_over_one_copy_or_several_or_there_is_none(time, copies):
    assert Strategy(time, "stitched", 16).copies == copies
