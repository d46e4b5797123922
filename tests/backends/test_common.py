"""What every backend's programs and sessions do alike: the contract of `rnnbench.backends.base`, on real programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.answers import check_program
from rnnbench.backends.base import ArrayError, Session
from rnnbench.results import is_lowered_form

RING = 8
"""Distinct chunks in a ring."""


def same(found: Any, expected: Any) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def kept(arrays: Any) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in arrays.items()}


def test_a_new_session_starts_from_zeros(stream) -> None:
    """The first of these tests: later sessions may take over what closed ones left."""
    session, x = stream.open(), stream.inputs(stream.chunk)
    stream.assert_state(session.get_state(), {n: np.zeros_like(a) for n, a in stream.state().items()})
    stream.assert_close(session.step({"x": x})["y"], stream.oracle(x).y)


def test_step_follows_the_oracle(stream) -> None:
    session, x, state = stream.open(), stream.inputs(12), stream.state()
    session.set_state(state)
    expected = stream.oracle(x, state)
    for start in range(0, 12, stream.chunk):
        end = start + stream.chunk
        stream.assert_close(session.step({"x": x[start:end]})["y"], expected.y[start:end])
        stream.assert_state(session.get_state(), {n: a[end - 1] for n, a in expected.states.items()})


def test_reset_returns_to_zeros(stream) -> None:
    session, x = stream.open(), stream.inputs(stream.chunk)
    first = session.step({"x": x})["y"]
    session.reset()
    assert not any(array.any() for array in session.get_state().values())
    np.testing.assert_array_equal(session.step({"x": x})["y"], first)


def test_one_call_may_have_many_chunks(stream) -> None:
    session, x, state = stream.open(), stream.inputs(3 * stream.chunk), stream.state()
    session.set_state(state)
    expected = stream.oracle(x, state)
    stream.assert_close(session.step({"x": x})["y"], expected.y)
    stream.assert_state(session.get_state(), expected.final)


@pytest.mark.parametrize("split", [(9,), (1, 8), (4, 1, 4), (1,) * 9], ids=str)
def test_a_stream_may_be_cut_anywhere(ragged_stream, split: tuple[int, ...]) -> None:
    subject = ragged_stream
    session, x, state = subject.open(), subject.inputs(9), subject.state()
    session.set_state(state)
    expected = subject.oracle(x, state)
    start = 0
    for steps in split:
        y = session.step({"x": x[start : start + steps]})["y"]
        start += steps
        subject.assert_close(y, expected.y[start - steps : start])
        subject.assert_state(session.get_state(), {n: a[start - 1] for n, a in expected.states.items()})
    assert subject.chunk == 1 or subject.program.tail_build_s > 0


def test_sessions_are_independent(stream) -> None:
    streams = [stream.inputs(2 * stream.chunk, seed) for seed in (1, 2)]
    sessions = [stream.open() for _ in streams]
    expected = [stream.oracle(x).y for x in streams]
    for start in (0, stream.chunk):
        for session, x, y in zip(sessions, streams, expected, strict=True):
            end = start + stream.chunk
            stream.assert_close(session.step({"x": x[start:end]})["y"], y[start:end])


def test_a_session_outlives_another_that_was_closed(stream) -> None:
    first, second, x = stream.open(), stream.open(), stream.inputs(stream.chunk)
    first.step({"x": x})
    first.close()
    stream.assert_close(second.step({"x": x})["y"], stream.oracle(x).y)


def test_a_state_moves_between_sessions(stream) -> None:
    first, second = stream.open(), stream.open()
    x, later = stream.inputs(stream.chunk), stream.inputs(stream.chunk, seed=2)
    first.step({"x": x})
    second.set_state(first.get_state())
    same(second.get_state(), first.get_state())
    np.testing.assert_array_equal(second.step({"x": later})["y"], first.step({"x": later})["y"])


def test_what_is_returned_belongs_to_the_caller(stream) -> None:
    session, x = stream.open(), stream.inputs(2 * stream.chunk)
    expected = stream.oracle(x)
    y, state = session.step({"x": x[: stream.chunk]})["y"], session.get_state()
    untouched, untouched_state = y.copy(), kept(state)
    again = session.step({"x": x[stream.chunk :]})["y"]
    np.testing.assert_array_equal(y, untouched)
    same(state, untouched_state)
    last = session.get_state()
    for array in (y, again, *state.values(), *last.values()):
        array.fill(99)
    stream.assert_state(session.get_state(), expected.final)


def test_what_is_given_stays_the_callers(stream) -> None:
    session = stream.open()
    x, state = stream.inputs(stream.chunk).copy(), kept(stream.state())
    given_x, given_state = x.copy(), kept(state)
    session.set_state(state)
    expected = stream.oracle(x, state)
    y = session.step({"x": x})["y"]
    np.testing.assert_array_equal(x, given_x)
    same(state, given_state)
    for array in (x, *state.values()):
        array.fill(99)
    stream.assert_close(y, expected.y)
    stream.assert_state(session.get_state(), expected.final)


def test_arrays_may_lie_in_memory_in_any_way(stream) -> None:
    plain, x = stream.open(), stream.inputs(stream.chunk)
    ring = [stream.inputs(stream.chunk, seed) for seed in range(RING)]
    plain.set_state(stream.state())
    y, state = plain.step({"x": x})["y"], plain.get_state()
    bound = plain.bind([{"x": x} for x in ring])
    bound()
    for how, lay in LAYOUTS.items():
        odd = stream.open()
        odd.set_state({name: lay(array) for name, array in stream.state().items()})
        np.testing.assert_array_equal(odd.step({"x": lay(x)})["y"], y, err_msg=how)
        same(odd.get_state(), state)
        bound_odd = odd.bind([{"x": lay(x)} for x in ring])
        bound_odd()
        np.testing.assert_array_equal(bound_odd.output()["y"], bound.output()["y"], err_msg=how)


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


def _misaligned(array: np.ndarray) -> np.ndarray:
    """Contiguous, but not on any boundary that a vector unit likes."""
    memory = np.empty(array.nbytes + 4, np.uint8)
    moved = memory[4:].view(array.dtype).reshape(array.shape)
    moved[:] = array
    return moved


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "read-only": _read_only,
    "strided": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "fortran": np.asfortranarray,
    "misaligned": _misaligned,
}


class Bench:
    """A session with a ring bound to it, and the stream that the oracle has seen so far."""

    def __init__(self, subject) -> None:
        self.subject = subject
        self.ring = [subject.inputs(subject.chunk, seed) for seed in range(RING)]
        self.session: Session = subject.open()
        self.bound = self.session.bind([{"x": x} for x in self.ring])
        self.calls = 0
        self.state = {n: np.zeros_like(a) for n, a in subject.state().items()}

    def call(self, times: int = 1) -> None:
        for _ in range(times):
            self.bound()
            self._advance(self.ring[self.calls % RING])
            self.calls += 1

    def step(self, x: np.ndarray) -> None:
        y = self.session.step({"x": x})["y"]
        self.subject.assert_close(y, self._advance(x))

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        self.session.set_state(state)
        self.state = state

    def check(self) -> None:
        """Output and state are the oracle's."""
        self.bound.sync()
        self.subject.assert_close(self.bound.output()["y"], self.y)
        self.subject.assert_state(self.session.get_state(), self.state)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        trajectory = self.subject.oracle(x, self.state)
        self.y, self.state = trajectory.y, trajectory.final
        return self.y


def test_a_bound_call_advances_by_the_next_chunk_of_the_ring(stream) -> None:
    """Looked at after the first call, the second, the last of the ring, and three of the next pass."""
    bench = Bench(stream)
    bench.set_state(stream.state())
    for calls in (1, 1, RING - 2, 3):
        bench.call(calls)
        bench.check()


def test_the_arrays_of_a_ring_are_the_callers_once_it_is_bound(stream) -> None:
    """Who refills one buffer for every chunk changes no ring that was bound before."""
    session, given = stream.open(), [stream.inputs(stream.chunk, seed).copy() for seed in range(RING)]
    first = given[0].copy()
    bound = session.bind([{"x": x} for x in given])
    for x in given:
        x.fill(99)
    bound()
    bound.sync()
    stream.assert_close(bound.output()["y"], stream.oracle(first).y)


def test_binding_runs_no_step(stream) -> None:
    session, state = stream.open(), stream.state()
    session.set_state(state)
    session.bind([{"x": stream.inputs(stream.chunk, seed)} for seed in range(RING)])
    same(session.get_state(), state)


def test_a_bound_call_survives_reset_and_set_state_and_mixes_with_step(stream) -> None:
    bench = Bench(stream)
    bench.call(2)
    bench.check()
    bench.step(stream.inputs(stream.chunk, seed=20))
    bench.call()
    bench.check()
    bench.session.reset()
    bench.state = {n: np.zeros_like(a) for n, a in bench.state.items()}
    bench.call()
    bench.check()
    bench.set_state(stream.state(seed=3))
    bench.call(2)
    bench.check()
    bench.step(stream.inputs(stream.chunk, seed=21))


def test_a_bound_output_belongs_to_the_caller(stream) -> None:
    bench = Bench(stream)
    bench.call()
    y = bench.bound.output()["y"]
    untouched = y.copy()
    bench.call()
    bench.bound.sync()
    np.testing.assert_array_equal(y, untouched)
    y.fill(99)
    bench.check()


def test_bound_calls_of_two_sessions_are_independent(stream) -> None:
    first, second = Bench(stream), Bench(stream)
    second.set_state(stream.state())
    for times in (1, 2):
        first.call(times)
        second.call(1)
    first.check()
    second.check()


def wrong_inputs(subject) -> list[tuple[Any, str]]:
    x = subject.inputs(subject.chunk)
    model, batch = subject.plan.model, subject.plan.batch
    shape = f"x: expected shape [n ≥ 1, {batch}, {model.input}], got "
    return [
        ({"z": x}, "inputs: expected the arrays ['x'], got ['z']"),
        ({}, "inputs: expected the arrays ['x'], got none"),
        ({"x": x, "h": x}, "inputs: expected the arrays ['x'], got ['x', 'h']"),
        ({"x": x.tolist()}, "x: expected a NumPy array, got list"),
        ({"x": x.astype("float64")}, "x: expected dtype float32, got float64"),
        ({"x": x[0]}, shape + str(list(x[0].shape))),
        ({"x": x[:0]}, shape + str([0, *x.shape[1:]])),
        ({"x": np.concatenate([x, x], axis=1)}, shape + str([subject.chunk, 2 * batch, model.input])),
        ({"x": x[..., :-1]}, shape + str([subject.chunk, batch, model.input - 1])),
    ]


def wrong_states(subject) -> list[tuple[Any, str]]:
    state = subject.state()
    names = list(state)
    first, last = names[0], names[-1]
    rows, batch, size = state[first].shape
    shape = f"{first}: expected shape {[rows, batch, size]}, got "
    return [
        ({**state, "k": state[first]}, f"state: expected the arrays {names}, got {[*names, 'k']}"),
        ({}, f"state: expected the arrays {names}, got none"),
        ({**state, first: state[first][0]}, shape + str([batch, size])),
        ({**state, first: state[first][..., :-1]}, shape + str([rows, batch, size - 1])),
        ({**state, last: state[last].astype("float64")}, f"{last}: expected dtype float32, got float64"),
    ]


def test_a_wrong_array_is_named_and_changes_nothing(stream) -> None:
    session, x, state = stream.open(), stream.inputs(stream.chunk), stream.state(seed=4)
    session.set_state(state)
    for inputs, complaint in wrong_inputs(stream):
        with pytest.raises(ArrayError, match=re.escape(complaint)):
            session.step(inputs)
        with pytest.raises(ArrayError, match=re.escape(complaint).replace(r"n\ ≥\ 1", str(stream.chunk))):
            session.bind([{"x": x}, inputs])
    for wrong, complaint in wrong_states(stream):
        with pytest.raises(ArrayError, match=re.escape(complaint)):
            session.set_state(wrong)
    same(session.get_state(), state)
    stream.assert_close(session.step({"x": x})["y"], stream.oracle(x, state).y)


def test_a_ring_holds_chunks_of_the_programs_size(program) -> None:
    session, x = program.open(), program.inputs(program.chunk + 1)
    with pytest.raises(ArrayError, match="ring: expected at least one chunk, got none"):
        session.bind([])
    with pytest.raises(ArrayError, match=rf"x: expected shape \[{program.chunk}, .*got \[{program.chunk + 1}, "):
        session.bind([{"x": x}])


def test_without_a_state_every_call_starts_from_zeros(whole) -> None:
    session = whole.open()
    for seed in (1, 2, 1):
        x = whole.inputs(whole.chunk, seed)
        whole.assert_close(session.step({"x": x})["y"], whole.oracle(x).y)
        session.reset()
    assert whole.program.signature.of("state") == ()
    assert session.get_state() == {}
    session.set_state({})


def test_without_a_state_a_call_is_a_whole_sequence(whole) -> None:
    session = whole.open()
    for steps in {whole.chunk + 1, 2 * whole.chunk}:
        with pytest.raises(ArrayError, match=f"x: expected {whole.chunk} steps, got {steps}"):
            session.step({"x": whole.inputs(steps)})
    with pytest.raises(ArrayError, match=r"state: expected the arrays none, got \['h'"):
        session.set_state(whole.state())


def test_without_a_state_a_bound_call_starts_from_zeros(whole) -> None:
    session = whole.open()
    ring = [whole.inputs(whole.chunk, seed) for seed in range(RING)]
    bound = session.bind([{"x": x} for x in ring])
    for call in range(RING + 2):
        bound()
        whole.assert_close(bound.output()["y"], whole.oracle(ring[call % RING]).y)


def test_the_signature_tells_every_array(program) -> None:
    model, batch = program.plan.model, program.plan.batch
    arrays = {spec.name: spec for spec in program.program.signature.arrays}
    assert (arrays["x"].role, arrays["x"].shape) == ("input", ("n", "batch", model.input))
    assert (arrays["y"].role, arrays["y"].shape) == ("output", ("n", "batch", model.width))
    states = {} if program.plan.strategy.state == "none" else model.state_shapes(batch)
    assert {s.name: s.shape for s in program.program.signature.of("state")} == {
        name: (rows, "batch", size) for name, (rows, _, size) in states.items()
    }
    assert {spec.dtype for spec in arrays.values()} == {"float32"}


def test_the_artifact_tells_what_it_is(program) -> None:
    artifact = program.artifact
    assert re.fullmatch("[0-9a-f]{64}", artifact.source_digest)
    assert re.fullmatch("[0-9a-f]{64}", artifact.digest)
    assert artifact.nbytes > 0
    assert sum(sum(stage.values()) for stage in artifact.operations.values()) > 0
    assert is_lowered_form(artifact.lowered)
    check_program(program.backend.name, program.program, program.request, program.cache)


def test_a_second_build_loads_the_first(program) -> None:
    again = program.backend.build(program.request, program.cache)
    assert (program.program.cached, again.cached) == (False, True)
    assert (again.artifact, again.files) == (program.program.artifact, program.program.files)
    x = program.inputs(program.chunk)
    np.testing.assert_array_equal(again.open().step({"x": x})["y"], program.open().step({"x": x})["y"])
    again.close()


def test_different_programs_have_different_digests(programs) -> None:
    """Programs of one digest compute one thing: one model, chunk and batch, all from zeros or all from a state."""
    for digest in ("source_digest", "digest"):
        seen: dict[str, Any] = {}
        for subject in programs:
            plan = subject.plan
            what = (plan.model, plan.batch, plan.strategy.chunk, plan.strategy.state == "none")
            assert seen.setdefault(getattr(subject.artifact, digest), what) == what
        assert len(seen) > 1 or len(programs) == 1


def test_each_layer_with_a_state_has_a_loop(looped_network) -> None:
    """TorchScript's executor also makes a loop over eight copies of each."""
    loops = sum(bool(layer.states) for layer in looped_network.plan.model.graph)
    target = looped_network.backend.name, looped_network.request.route
    of_executor = f" + looped {loops} of 8" if target == ("torch", "script") else ""
    assert loops > 1
    assert looped_network.program.artifact.lowered == f"looped {loops}{of_executor}"


def test_steps_have_the_form_that_was_asked_for(written_steps) -> None:
    loops, (time, _, copies) = len(written_steps.plan.model.graph), written_steps.plan.strategy.time.partition(":")
    forms = {"looped": f"looped {loops}", "unrolled": f"unrolled {loops * written_steps.chunk}"}
    assert written_steps.program.artifact.lowered == (f"looped {loops} of {copies}" if copies else forms[time])
