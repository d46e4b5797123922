"""What every program does alike whose rows have lengths of their own: `Request.ragged`."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, ArrayError, Request
from rnnbench.cases.trial import Precision, Strategy, Target
from rnnbench.plan import adapters
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_lengths

RING = 8
"""Distinct chunks in a ring."""
LSTM = Model(cell="lstm", input=5, hidden=17)
TAKERS = {
    "jax:jit": {"looped", "unrolled"},
    "numpy:eager": {"looped"},
    "onnxruntime:onnx": {"fused"},
    "openvino:onnx": {"fused"},
    "openvino:opset": {"fused"},
    "tensorflow:graph": {"looped", "unrolled"},
    "tensorflow:keras": {"fused", "looped", "unrolled"},
    "tensorflow:keras-xla": {"fused", "looped", "unrolled"},
    "tensorflow:xla": {"looped", "unrolled"},
    "torch:eager": {"fused", "looped"},
}
"""Which targets take lengths, at what values of time: docs/conformance.md has the same."""
LIBRARIES = {"tensorflow:keras", "tensorflow:keras-xla", "onnxruntime:onnx", "openvino:onnx", "openvino:opset"}
"""Whose own RNN has other activations; cells that are written out have them on every route."""


def chunks(subject) -> list[tuple[np.ndarray, np.ndarray]]:
    """A ring of chunks with the lengths of their rows. One has all its steps in all rows."""
    lengths = draw_lengths(subject.chunk, subject.plan.batch, RING, seed=1).copy()
    lengths[2] = subject.chunk
    return [(subject.inputs(subject.chunk, seed), own) for seed, own in enumerate(lengths)]


def test_a_row_ends_where_its_length_says(rows) -> None:
    session = rows.open()
    for x, lengths in chunks(rows):
        y = session.step({"x": x, "lengths": lengths})["y"]
        rows.assert_close(y, rows.oracle(x, lengths=lengths).y)
        assert not y[np.arange(rows.chunk)[:, None] >= lengths].any()


def test_what_is_beyond_a_length_changes_nothing(rows) -> None:
    session = rows.open()
    for x, lengths in chunks(rows):
        y = session.step({"x": x, "lengths": lengths})["y"]
        poisoned = np.where((np.arange(rows.chunk)[:, None] >= lengths)[..., None], np.nan, x).astype(x.dtype)
        np.testing.assert_array_equal(session.step({"x": poisoned, "lengths": lengths})["y"], y)


def test_a_bound_call_has_the_lengths_of_its_chunk(rows) -> None:
    ring = chunks(rows)
    given = [{"x": x, "lengths": lengths.copy()} for x, lengths in ring]
    bound = rows.open().bind(given)
    for inputs in given:
        inputs["lengths"].fill(1)
    for call in range(RING + 2):
        bound()
        x, lengths = ring[call % RING]
        rows.assert_close(bound.output()["y"], rows.oracle(x, lengths=lengths).y)


def test_wrong_lengths_are_refused(rows) -> None:
    session = rows.open()
    x, lengths = chunks(rows)[0]
    for wrong in (np.zeros_like(lengths), lengths + rows.chunk, lengths.astype(np.int64), lengths[:1].repeat(9)):
        with pytest.raises(ArrayError, match="lengths: expected"):
            session.step({"x": x, "lengths": wrong})
        with pytest.raises(ArrayError, match="lengths: expected"):
            session.bind([{"x": x, "lengths": wrong}])
    with pytest.raises(ArrayError, match=r"inputs: expected the arrays \['x', 'lengths'\], got \['x'\]"):
        session.step({"x": x})


def test_a_second_build_loads_the_first(rows) -> None:
    again = rows.backend.build(rows.request, rows.cache)
    assert (rows.program.cached, again.cached) == (False, True)
    assert again.artifact == rows.program.artifact
    x, lengths = chunks(rows)[0]
    rows.assert_close(again.open().step({"x": x, "lengths": lengths})["y"], rows.oracle(x, lengths=lengths).y)
    again.close()


def asked(target: Target, model: Model, time: str, ragged: bool = False) -> Request:
    return Request(
        target.route, model, Weights(()), Strategy(time, "none", 4), 2, Precision.of("float32"), ragged=ragged
    )


def supported(target: Target, request: Request, extra: str) -> bool:
    answer = adapters.support(target.backend, request)
    assert answer.level == "unsupported" or extra in answer.covers
    return answer.level != "unsupported"


def test_these_targets_take_lengths_and_no_others(target: Target) -> None:
    times = {
        time
        for time in ("fused", "looped", "unrolled")
        if supported(target, asked(target, LSTM, time, ragged=True), LENGTHS)
    }
    assert times == TAKERS.get(str(target), set())


def test_a_cell_that_is_written_out_has_every_activation(target: Target) -> None:
    other = LSTM.model_copy(update={"activation": "relu", "recurrent_activation": "hard_sigmoid"})
    for time in ("looped", "unrolled"):
        plain = adapters.support(target.backend, asked(target, LSTM, time)).level
        assert supported(target, asked(target, other, time), ACTIVATIONS) == (plain != "unsupported")


def test_few_libraries_have_other_activations(target: Target) -> None:
    relu = LSTM.model_copy(update={"activation": "relu"})
    expected = str(target) in {*LIBRARIES, "iree:onnx", "iree:tensorflow"}
    assert supported(target, asked(target, relu, "fused"), ACTIVATIONS) == expected
