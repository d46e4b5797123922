"""Bound and public calls run the same program, and streams do not share the model's variables."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.backends.tensorflow import TensorflowBackend, executor
from rnnbench.rnn.weights import draw_inputs, draw_state


@pytest.mark.first(1)
@pytest.mark.parametrize("route", ["graph", "xla", "keras", "keras-xla"])
def test_bound_and_public_calls_give_the_same_bits(build, ask, route: str) -> None:
    program, model = build(route, state="stateful"), ask(route).model
    public, fast = program.open(), program.open()
    for session in (public, fast):
        session.set_state(draw_state(model, 1, seed=1))
    chunks = [draw_inputs(model, 4, 1, seed) for seed in range(8)]
    bound = fast.bind([{"x": x} for x in chunks])
    for x in chunks:
        bound()
        np.testing.assert_array_equal(bound.output()["y"], public.step({"x": x})["y"])


@pytest.mark.first(1)
@pytest.mark.parametrize("entry_point", ["TFE_Py_NoSuchThing", "TFE_Py_FastPathExecute"], ids=["absent", "changed"])
@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
def test_without_the_private_entry_point_a_bound_call_uses_the_concrete_function(
    build, ask, folder, monkeypatch, state, entry_point
) -> None:
    x = draw_inputs(ask("graph").model, 4, 1, seed=1)
    private = build("graph", state=state)
    expected = private.open().step({"x": x})["y"]
    assert any("TFE_Py_Execute, which is private" in note for note in private.artifact.notes)
    monkeypatch.setattr(executor, "ENTRY_POINT", entry_point)
    program = TensorflowBackend().build(ask("graph", state=state), folder)
    assert any("bound calls use the concrete function" in note for note in program.artifact.notes)
    bound = program.open().bind([{"x": x}])
    bound()
    np.testing.assert_array_equal(bound.output()["y"], expected)


@pytest.mark.parametrize("route", ["graph", "keras"])
def test_streams_leave_the_models_own_variables_alone(build, ask, route: str) -> None:
    program = build(route, state="stateful")
    before = [variable.numpy() for variable in program.model.state]
    session = program.open()
    session.set_state(draw_state(ask(route).model, 1, seed=1))
    session.step({"x": draw_inputs(ask(route).model, 4, 1, seed=1)})
    for variable, value in zip(program.model.state, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
